/* Commit-to-visible latency: commits a row on the source, then asks ClickHouse until it shows.
 *
 *   latency CONNINFO URL TABLE N
 *
 * TABLE (id bigint primary key) exists on the source and, by the same name after public_, in the
 * destination's database of the source's name.  Prints `median p99` in milliseconds. */
#include <curl/curl.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static size_t
keep_first(char *p, size_t size, size_t n, void *arg)
{
	if (n)
		*(char *)arg = *p;
	return size * n;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int
main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "usage: latency CONNINFO URL TABLE N\n");
		return 2;
	}
	int n = atoi(argv[4]);
	PGconn *pg = PQconnectdb(argv[1]);
	CURL *curl = curl_easy_init();
	double *took = calloc((size_t)n, sizeof *took);
	char sql[512], first;

	if (PQstatus(pg) != CONNECTION_OK || !curl || !took || n < 1) {
		fprintf(stderr, "latency: %s\n", PQerrorMessage(pg));
		return 1;
	}
	curl_easy_setopt(curl, CURLOPT_URL, argv[2]);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep_first);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &first);
	for (int i = 0; i < n; i++) {
		snprintf(sql, sizeof sql, "INSERT INTO %s VALUES (%d)", argv[3], i + 1);
		PGresult *res = PQexec(pg, sql);

		if (PQresultStatus(res) != PGRES_COMMAND_OK) {
			fprintf(stderr, "latency: %s\n", PQerrorMessage(pg));
			return 1;
		}
		PQclear(res);
		double start = now_ms();

		snprintf(sql, sizeof sql, "SELECT count() FROM %s.public_%s WHERE id = %d", PQdb(pg), argv[3], i + 1);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, sql);
		do {
			first = 0;
			if (curl_easy_perform(curl) != CURLE_OK || now_ms() - start > 60e3) {
				fprintf(stderr, "latency: row %d is not visible\n", i + 1);
				return 1;
			}
			/* Asking without a pause would be load of its own. */
			if (first != '1')
				usleep(2000);
		} while (first != '1');
		took[i] = now_ms() - start;
	}
	qsort(took, (size_t)n, sizeof *took, compare);
	printf("%.1f %.1f\n", took[n / 2], took[(int)((double)(n - 1) * 0.99)]);
	free(took);
	curl_easy_cleanup(curl);
	PQfinish(pg);
	return 0;
}
