/* Says of a stopped 16's or 17's cluster that it is of the other major, for tests: the version in
 * global/pg_control and its CRC.  Both have the same layout (catalog/pg_control.h).
 *   controlversion PGDATA 1300|1700 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ws/crc.h"

enum { VERSION = 8, CRC = 288 };

int
main(int argc, char **argv)
{
	uint8_t b[CRC + 4];
	char path[4096];
	uint32_t version, crc;
	int fd;

	if (argc != 3)
		return 2;
	snprintf(path, sizeof(path), "%s/global/pg_control", argv[1]);
	version = (uint32_t)strtoul(argv[2], NULL, 10);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || pread(fd, b, sizeof(b), 0) != sizeof(b)) {
		perror(path);
		return 1;
	}
	memcpy(b + VERSION, &version, 4);
	crc = WS_CRC_FIN(ws_crc32c(WS_CRC_INIT, b, CRC));
	memcpy(b + CRC, &crc, 4);
	if (pwrite(fd, b, sizeof(b), 0) != sizeof(b) || close(fd)) {
		perror(path);
		return 1;
	}
	return 0;
}
