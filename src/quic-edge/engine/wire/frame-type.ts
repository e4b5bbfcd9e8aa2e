/** Types of frames (RFC 9000 section 19). Pure: names alone. */
export const FRAME = {
  padding: 0x00,
  ping: 0x01,
  ack: 0x02,
  ackEcn: 0x03,
  resetStream: 0x04,
  stopSending: 0x05,
  crypto: 0x06,
  newToken: 0x07,
  /** 0x08 to 0x0f; the low bits are of `STREAM_BIT`. */
  stream: 0x08,
  maxData: 0x10,
  maxStreamData: 0x11,
  maxStreamsBidi: 0x12,
  maxStreamsUni: 0x13,
  dataBlocked: 0x14,
  streamDataBlocked: 0x15,
  streamsBlockedBidi: 0x16,
  streamsBlockedUni: 0x17,
  newConnectionId: 0x18,
  retireConnectionId: 0x19,
  pathChallenge: 0x1a,
  pathResponse: 0x1b,
  connectionClose: 0x1c,
  applicationClose: 0x1d,
  handshakeDone: 0x1e,
} as const

/** What a STREAM frame's type says besides. */
export const STREAM_BIT = { fin: 0x01, length: 0x02, offset: 0x04 } as const
