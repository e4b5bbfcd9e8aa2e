/** @returns `1 message`, `2 messages`. @param noun one that takes an s. */
export const counted = (count: number | bigint, noun: string): string =>
  `${count} ${noun}${count === 1 || count === 1n ? '' : 's'}`
