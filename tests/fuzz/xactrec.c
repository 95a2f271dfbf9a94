/* Fuzz target: transaction records.  Byte 0 is the record's info, byte 1 chooses the major, the
 * rest is its main data. */
#include <string.h>

#include "ws/xactrec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ws_rec rec = {.rmid = WS_RM_XACT};
	struct ws_record r = {.rec = &rec};
	struct ws_xactrec x;
	volatile uint32_t sum = 0;

	if (size < 2)
		return 0;
	rec.info = data[0];
	r.main = data + 2;
	r.main_len = (uint32_t)(size - 2);
	if (ws_xactrec_parse(&r, ws_walver_by_major(16 + data[1] % 3), &x, NULL) != 1)
		return 0;
	for (uint32_t i = 0; i < x.nsubxids; i++)
		sum += ws_xactrec_subxid(&x, i);
	for (uint32_t i = 0; i < x.nrels; i++)
		sum += ws_xactrec_rel(&x, i).rel;
	for (uint32_t i = 0; i < x.nmsgs; i++)
		sum += ws_xactrec_msg(&x, i).value;
	for (uint32_t i = 0; i < x.nabort_rels * 12; i++)
		sum += x.abort_rels[i];
	sum += x.gid ? (uint32_t)strlen(x.gid) : 0;
	(void)sum;
	return 0;
}
