/* What an answer means: the table of errors; see lib/ch/http.h.  Codes are ClickHouse's
 * (src/Common/ErrorCodes.cpp). */
#include <stdio.h>
#include <string.h>

#include "lib/ch/http.h"

static const struct error_class {
	int code;
	enum ch_outcome outcome;
	const char *reason;
} classes[] = {
	/* not now */
	{241, CH_TEMP, ""},
	{159, CH_TEMP, ""},
	{160, CH_TEMP, ""},
	{202, CH_TEMP, ""},
	{203, CH_TEMP, ""},
	{209, CH_TEMP, ""},
	{210, CH_TEMP, ""},
	{216, CH_TEMP, ""},
	{225, CH_TEMP, ""},
	{236, CH_TEMP, ""},
	{242, CH_TEMP, ""},
	{243, CH_TEMP, ""},
	{252, CH_TEMP, ""},
	{279, CH_TEMP, ""},
	{285, CH_TEMP, ""},
	{286, CH_TEMP, ""},
	{394, CH_TEMP, ""},
	{473, CH_TEMP, ""},
	{517, CH_TEMP, ""},
	{999, CH_TEMP, ""},
	{319, CH_UNKNOWN, ""},
	/* an operator */
	{192, CH_REFUSED, "destination_auth"},
	{193, CH_REFUSED, "destination_auth"},
	{194, CH_REFUSED, "destination_auth"},
	{497, CH_REFUSED, "destination_access"},
	{516, CH_REFUSED, "destination_auth"},
	{164, CH_REFUSED, "destination_readonly"},
	{115, CH_REFUSED, "destination_setting"},
	{452, CH_REFUSED, "destination_setting"},
	{60, CH_REFUSED, "destination_table_missing"},
	{81, CH_REFUSED, "destination_database_missing"},
	{10, CH_REFUSED, "destination_schema"},
	{15, CH_REFUSED, "destination_schema"},
	{16, CH_REFUSED, "destination_schema"},
	{36, CH_REFUSED, "destination_schema"},
	{44, CH_REFUSED, "destination_schema"},
	{47, CH_REFUSED, "destination_schema"},
	{48, CH_REFUSED, "destination_schema"},
	{50, CH_REFUSED, "destination_schema"},
	{53, CH_REFUSED, "destination_schema"},
	{57, CH_REFUSED, "destination_schema"},
	{117, CH_REFUSED, "destination_schema"},
	{169, CH_REFUSED, "destination_schema"},
	{349, CH_REFUSED, "destination_schema"},
	{524, CH_REFUSED, "destination_schema"},
	{701, CH_REFUSED, "destination_schema"},
	{1001, CH_REFUSED, "destination_schema"},
	/* what was sent is not what was meant */
	{27, CH_BUG, ""},
	{32, CH_BUG, ""},
	{33, CH_BUG, ""},
	{49, CH_BUG, ""},
	{62, CH_BUG, ""},
	{128, CH_BUG, ""},
	{131, CH_BUG, ""},
	{271, CH_BUG, ""},
	{354, CH_BUG, ""},
	{561, CH_BUG, ""},
	{618, CH_BUG, ""},
};

static bool
mentions(const struct ws_buf *b, const char *word)
{
	return b->len && memmem(b->data, b->len, word, strlen(word));
}

/* The answer's text on one line, cut to what fits. */
static void
excerpt(const struct ch_req *r, char *out, size_t room)
{
	size_t n = 0;

	for (size_t i = 0; i < r->body.len && n + 1 < room; i++)
		out[n++] = r->body.data[i] < 0x20 ? ' ' : (char)r->body.data[i];
	while (n && out[n - 1] == ' ')
		n--;
	out[n] = 0;
}

static enum ch_outcome
classify(const struct ch_req *r, const char **reason)
{
	*reason = "";
	/* Two limits have one code; the other one passes by itself. */
	if (r->code == 252 && mentions(&r->body, "oo many partitions")) {
		*reason = "destination_schema";
		return CH_REFUSED;
	}
	for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
		if (classes[i].code == r->code) {
			*reason = classes[i].reason;
			return classes[i].outcome;
		}
	if (r->status == 401 || r->status == 403) {
		*reason = "destination_auth";
		return CH_REFUSED;
	}
	/* A proxy's errors carry no code. */
	if (r->status >= 500 || r->status == 408 || r->status == 429)
		return r->code ? CH_TEMP : CH_UNKNOWN;
	*reason = "destination_refused";
	return CH_REFUSED;
}

enum ch_outcome
ch_req_outcome(const struct ch_http *h, const struct ch_req *r, struct ws_err *err)
{
	const char *url = ch_http_url(h, r->used_url), *reason;
	char text[600];

	if (r->result != CURLE_OK) {
		ws_err_temp(err, "%s: %s", url, r->error[0] ? r->error : curl_easy_strerror(r->result));
		if (r->result == CURLE_PEER_FAILED_VERIFICATION || r->result == CURLE_SSL_CACERT_BADFILE ||
			r->result == CURLE_SSL_CERTPROBLEM) {
			ws_err_op(err, "destination_tls", "%s: %s", url, r->error);
			return CH_REFUSED;
		}
		/* Nothing was sent when there was no connection. */
		return r->result == CURLE_COULDNT_CONNECT || r->result == CURLE_COULDNT_RESOLVE_HOST
				   ? CH_TEMP
				   : CH_UNKNOWN;
	}
	excerpt(r, text, sizeof text);
	if (r->status != 200 || r->code) {
		enum ch_outcome o = classify(r, &reason);

		if (o == CH_REFUSED)
			ws_err_op(err, reason, "%s: status %ld: %s", url, r->status, text);
		else if (o == CH_BUG)
			ws_err_op(err, "destination_unreadable", "%s: the server cannot read what was sent: %s",
					  url, text);
		else
			ws_err_temp(err, "%s: status %ld: %s", url, r->status, text);
		return o;
	}
	/* A query that fails half-way has status 200 and the error in its body. */
	if (mentions(&r->body, "__exception__")) {
		ws_err_temp(err, "%s: failed while answering: %s", url, text);
		return CH_UNKNOWN;
	}
	if (r->insert && r->body.len) {
		ws_err_temp(err, "%s: unexpected answer to an insert: %s", url, text);
		return CH_UNKNOWN;
	}
	/* More than sent: the rows of materialized views count, too. */
	if (r->insert && (!r->has_written || r->written < r->rows)) {
		ws_err_op(err, "destination_rows", "%s: %llu rows sent, %llu written", url,
				  (unsigned long long)r->rows, (unsigned long long)r->written);
		return CH_REFUSED;
	}
	return CH_OK;
}
