/* The answers of S3, in XML.  Pure.  Of lib/store only. */
#ifndef WS_STORE_S3XML_H
#define WS_STORE_S3XML_H

#include "ws/mem.h"

/* A piece of XML that is not copied. */
struct xml {
	const char *p;
	size_t n;
};

/* The next <tag>...</tag> in *in: 1 with its content, and *in is what follows; 0: no more. */
int xml_next(struct xml *in, const char *tag, struct xml *content);
/* The text of the first <tag> in content, entities replaced: 1, 0 not there, -1 longer than out or
 * an entity that is none. */
int xml_text(struct xml content, const char *tag, char *out, size_t room);

#endif
