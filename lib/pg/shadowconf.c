/* The shadow's configuration; see ws/basebackup.h. */
#include "shadowdir.h"

/* The socket's directory is 0700: who can reach it is the same user. */
const char shadowconf_hba[] = "# Written by ws-backup.\n"
                              "local all all trust\n"
                              "local replication all trust\n";

/* A value between quotes of postgresql.conf. */
static void
put_quoted(struct ws_buf *b, const char *s)
{
	for (; *s; s++) {
		if (*s == '\'' || *s == '\\')
			ws_buf_putc(b, (uint8_t)*s);
		ws_buf_putc(b, (uint8_t)*s);
	}
}

/* A value inside a connection string that is itself a quoted setting. */
static void
put_conninfo(struct ws_buf *b, const char *s)
{
	struct ws_buf v = {0};

	for (; *s; s++) {
		if (*s == '\'' || *s == '\\')
			ws_buf_putc(&v, '\\');
		ws_buf_putc(&v, (uint8_t)*s);
	}
	put_quoted(b, ws_buf_cstr(&v));
	ws_buf_free(&v);
}

static int
at_least(int v, int least)
{
	return v > least ? v : least;
}

void
shadowconf_text(const struct ws_shadowconf *conf, const struct ws_pgcontrol *c, struct ws_buf *out)
{
	ws_buf_puts(out, "# The shadow: a standby that holds the catalogs alone.  Written by ws-backup.\n"
	                 "listen_addresses = ''\n"
	                 "port = 5433\n"
	                 "unix_socket_directories = '");
	put_quoted(out, conf->rundir);
	ws_buf_puts(out, "'\nunix_socket_permissions = 0700\n"
	                 "hot_standby = on\n"
	                 "primary_conninfo = 'host=''");
	put_conninfo(out, conf->rundir);
	ws_buf_puts(out, "'' port=5432 user=walshadow application_name=shadow sslmode=disable "
	                 "gssencmode=disable'\n"
	                 "primary_slot_name = ''\n"
	                 "recovery_target_timeline = 'latest'\n"
	                 "wal_retrieve_retry_interval = 200ms\n"
	                 "wal_receiver_status_interval = 1s\n"
	                 "max_standby_streaming_delay = 5s\n"
	                 "max_standby_archive_delay = 5s\n"
	                 "hot_standby_feedback = off\n"
	                 "# A parked shadow must never wait for a lock for long.\n"
	                 "lock_timeout = 10s\n"
	                 "# Catalog vacuum is replayed from the source; user tables have no files here.\n"
	                 "autovacuum = off\n"
	                 "jit = off\n"
	                 "allow_in_place_tablespaces = on\n"
	                 "wal_level = replica\n"
	                 "archive_mode = off\n"
	                 "shared_preload_libraries = ''\n"
	                 "shared_buffers = 64MB\n"
	                 "wal_keep_size = 0\n"
	                 "ssl = off\n"
	                 "logging_collector = off\n"
	                 "lc_messages = 'C'\n"
	                 "# What the source's pg_control demands at least.\n");
	unsigned seg_mb = c->segsize >> 20;

	ws_buf_printf(out, "max_connections = %d\n", at_least(c->max_connections, 20));
	ws_buf_printf(out, "max_worker_processes = %d\n", at_least(c->max_worker_processes, 1));
	ws_buf_printf(out, "max_wal_senders = %d\n", at_least(c->max_wal_senders, 1));
	ws_buf_printf(out, "max_prepared_transactions = %d\n", c->max_prepared_xacts);
	ws_buf_printf(out, "max_locks_per_transaction = %d\n", at_least(c->max_locks_per_xact, 64));
	ws_buf_printf(out, "min_wal_size = %uMB\nmax_wal_size = %uMB\n", seg_mb > 16 ? 2 * seg_mb : 32,
	              seg_mb > 16 ? 8 * seg_mb : 256);
	if (c->track_commit_timestamp)
		ws_buf_puts(out, "track_commit_timestamp = on\n");
	ws_buf_printf(out, "# Origins of the source must find room.\n%s = %d\n",
	              conf->major >= 18 ? "max_active_replication_origins" : "max_replication_slots",
	              at_least(conf->origins, 10));
}
