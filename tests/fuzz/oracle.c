/* What the oracle sends: frames, greetings, answers; see ws/oracle.h. */
#include <string.h>

#include "ws/oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
answers(const struct ws_oracle_frame *f, struct ws_err *err)
{
	struct ws_oracle_answers a;
	uint32_t seq = 0, count = 0, len;
	const char *text;
	bool failed;

	if (f->n >= 8) {
		memcpy(&seq, f->p, 4);
		memcpy(&count, f->p + 4, 4);
	}
	if (ws_oracle_answers_begin(f->p, f->n, seq, count, &a, err) != 0)
		return;
	while (a.left && ws_oracle_answers_next(&a, &failed, &text, &len, err) == 1)
		if (len && text[len - 1] == 1 && failed)
			seq++;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct ws_oracle_frame f;
	struct ws_oracle_hello h;
	struct ws_err err;
	char text[40];

	while (ws_oracle_frame_parse(p, n, &f, &err) == 1) {
		ws_oracle_hello_parse(f.p, f.n, &h, &err);
		ws_oracle_text_parse(f.p, f.n, text, sizeof text, &err);
		answers(&f, &err);
		p += f.size;
		n -= f.size;
	}
	return 0;
}
