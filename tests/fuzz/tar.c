/* Fuzz target: the tar reader, in pieces whose size the first byte gives. */
#include "ws/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
on_member(void *arg, const struct ws_tar_member *m, struct ws_err *err)
{
	(void)arg;
	(void)m;
	(void)err;
	return 0;
}

static int
on_data(void *arg, const uint8_t *p, size_t n, struct ws_err *err)
{
	(void)p;
	(void)err;
	*(size_t *)arg += n;
	return 0;
}

static int
on_done(void *arg, struct ws_err *err)
{
	(void)arg;
	(void)err;
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ws_tar_events ev = {on_member, on_data, on_done};
	struct ws_tar t = {0};
	size_t total = 0, piece;

	if (!size)
		return 0;
	piece = data[0] + 1u;
	for (size_t at = 1; at < size; at += piece)
		if (ws_tar_feed(&t, data + at, size - at < piece ? size - at : piece, &ev, &total, NULL) != 0)
			break;
	return 0;
}
