/* The framed WAL stream's layout (ws-wal(5)).  Of lib/wal only. */
#ifndef WS_WALFRAME_H
#define WS_WALFRAME_H

#define WS_FRAME_MAGIC    "WSWAL001"
#define WS_FRAME_HEADER   24u
#define WS_FRAME_HEAD     16u
#define WS_FRAME_MAX      262144u /* bytes of WAL in a frame */

#endif
