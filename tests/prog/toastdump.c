/* Prints what a TOAST store holds, without its lock, for tests; ws-toast(5).
 *   toastdump DIR
 * A line an entry: `chunk TABLE ID BORN SEQ BYTES`, `place FILE BLOCK OFFSET TABLE ID BORN`,
 * `dead LSN KIND A B`, `table OID`. */
#include <inttypes.h>
#include <stdio.h>

#include <lmdb.h>

static uint64_t
be(const uint8_t *p, int n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

static void
show(const uint8_t *k, const uint8_t *v, size_t n)
{
	const uint32_t *w = (const void *)v;

	switch (k[0]) {
	case 'C':
		printf("chunk %" PRIu64 " %" PRIu64 " %" PRIX64 " %" PRIu64 " %zu\n", be(k + 1, 4),
		       be(k + 5, 4), ~be(k + 9, 8), be(k + 17, 4), n - 8);
		break;
	case 'D':
		printf("place %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u\n", be(k + 1, 4), be(k + 5, 4),
		       be(k + 9, 2), w[0], w[1]);
		break;
	case 'P':
		printf("dead %" PRIX64 " %c %" PRIu64 " %" PRIu64 "\n", be(k + 1, 8), k[9], be(k + 10, 4),
		       be(k + 14, 4));
		break;
	case 'R':
		printf("table %" PRIu64 "\n", be(k + 1, 4));
		break;
	}
}

int
main(int argc, char **argv)
{
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_cursor *c;
	MDB_val k, v;
	int rc;

	if (argc != 2) {
		fprintf(stderr, "usage: toastdump DIR\n");
		return 2;
	}
	if ((rc = mdb_env_create(&env)) != 0 ||
	    (rc = mdb_env_open(env, argv[1], MDB_RDONLY, 0600)) != 0 ||
	    (rc = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn)) != 0 ||
	    (rc = mdb_dbi_open(txn, NULL, 0, &dbi)) != 0 ||
	    (rc = mdb_cursor_open(txn, dbi, &c)) != 0) {
		fprintf(stderr, "toastdump: %s: %s\n", argv[1], mdb_strerror(rc));
		return 1;
	}
	while ((rc = mdb_cursor_get(c, &k, &v, MDB_NEXT)) == 0)
		show(k.mv_data, v.mv_data, v.mv_size);
	mdb_cursor_close(c);
	mdb_txn_abort(txn);
	mdb_env_close(env);
	return rc == MDB_NOTFOUND ? 0 : 1;
}
