/** Names of streams, topics and groups. Pure. */

/** Bytes of UTF-8, as in Iggy: the length travels as one byte. */
export const NAME_MAX_BYTES = 255

/** Whether a name is 1..255 bytes of well-formed text. Any character may stand in it: names never become paths. */
export function isNameValid(name: string): boolean {
  if (name.length === 0 || name.length > NAME_MAX_BYTES || !name.isWellFormed()) return false
  return utf8Length(name) <= NAME_MAX_BYTES
}

function utf8Length(text: string): number {
  let size = 0
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0
    size += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4
  }
  return size
}
