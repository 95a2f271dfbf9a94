/* What the filter did, by resource manager: for people and as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "ws/filter.h"

static void
add(struct ws_filterstat *to, const struct ws_filterstat *st)
{
	to->records += st->records;
	to->bytes += st->bytes;
	to->blanked += st->blanked;
	to->blanked_bytes += st->blanked_bytes;
	to->rewritten += st->rewritten;
}

static void
print_json(FILE *to, const struct ws_filterstat *st, const char *name)
{
	fprintf(to,
	        "{\"rmgr\":\"%s\",\"records\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"blanked\":%" PRIu64
	        ",\"blanked_bytes\":%" PRIu64 ",\"rewritten\":%" PRIu64 "}",
	        name, st->records, st->bytes, st->blanked, st->blanked_bytes, st->rewritten);
}

static void
print_line(FILE *to, const struct ws_filterstat *st, const char *name)
{
	fprintf(to, "%-18s %12" PRIu64 " %14" PRIu64 " %12" PRIu64 " %14" PRIu64 " %10" PRIu64 "\n", name,
	        st->records, st->bytes, st->blanked, st->blanked_bytes, st->rewritten);
}

void
ws_filterstats_print(FILE *to, const struct ws_filterstat *stats, bool json)
{
	struct ws_filterstat all = {0};
	const char *sep = "";
	char name[16];

	if (json)
		fputs("{\"rmgrs\":[", to);
	else
		fprintf(to, "%-18s %12s %14s %12s %14s %10s\n", "rmgr", "records", "bytes", "blanked",
		        "blanked bytes", "rewritten");
	for (int i = 0; i < 256; i++) {
		if (!stats[i].records)
			continue;
		const char *rmgr = ws_rmgr_name((uint8_t)i, name);

		if (json) {
			fprintf(to, "%s\n", sep);
			print_json(to, &stats[i], rmgr);
			sep = ",";
		} else {
			print_line(to, &stats[i], rmgr);
		}
		add(&all, &stats[i]);
	}
	if (json) {
		fputs("\n],\"total\":", to);
		print_json(to, &all, "total");
		fputs("}\n", to);
	} else {
		print_line(to, &all, "total");
	}
}
