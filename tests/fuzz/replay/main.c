/*
 * Runs a fuzz target without a fuzzer: over the files of a corpus folder, over copies of them
 * that are cut short or have bytes changed, and over noise.  What is tried is the same each time.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MUTATIONS = 200, NOISE = 500, NOISE_SIZE = 300, MAX_FILE = 1 << 20 };

static uint64_t seed = 88172645463325252u;
static unsigned long inputs;

static uint64_t
rnd(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

/* Each input in memory of exactly its size, so that the sanitizer sees the first byte past it. */
static void
try(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (copy == NULL)
		exit(1);
	if (size > 0)
		memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	inputs++;
}

static void
mutate(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (copy == NULL)
		exit(1);
	for (int i = 0; i < MUTATIONS && size > 0; i++) {
		memcpy(copy, data, size);
		for (uint64_t n = rnd(4); n > 0; n--)
			copy[rnd(size)] = (uint8_t)(rnd(4) ? rnd(256) : rnd(2) * 255);
		try(copy, rnd(3) ? size : rnd(size + 1));
	}
	free(copy);
}

static int
file(const char *dir, const char *name)
{
	static uint8_t data[MAX_FILE];
	char path[4096];
	struct stat st;
	size_t size;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "rb");
	if (f == NULL || fstat(fileno(f), &st) < 0 || st.st_size > MAX_FILE) {
		fprintf(stderr, "%s: cannot be read, or larger than %d bytes\n", path, MAX_FILE);
		return -1;
	}
	size = fread(data, 1, sizeof(data), f);
	fclose(f);
	try(data, size);
	mutate(data, size);
	return 0;
}

int
main(int argc, char **argv)
{
	uint8_t noise[NOISE_SIZE] = {0};
	struct dirent *e;
	unsigned files = 0;
	DIR *d;

	if (argc != 2) {
		fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
		return 2;
	}
	try(noise, 0);
	for (int i = 0; i < NOISE; i++) {
		size_t size = rnd(NOISE_SIZE);

		for (size_t k = 0; k < size; k++)
			noise[k] = (uint8_t)rnd(256);
		try(noise, size);
	}
	d = opendir(argv[1]);
	while (d != NULL && (e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		if (file(argv[1], e->d_name) < 0)
			return 1;
		files++;
	}
	if (d != NULL)
		closedir(d);
	if (files == 0) {
		fprintf(stderr, "%s: no corpus; `make fuzz fuzz-corpus` makes one\n", argv[1]);
		return 1;
	}
	printf("%u files, %lu inputs\n", files, inputs);
	return 0;
}
