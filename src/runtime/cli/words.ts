/** Every way to write a command: each name of the noun with each name of the verb. Pure. */
import type { CommandSpec } from './grammar.ts'

/** The first of each is the one that help shows. */
export function commandWords(
  nouns: readonly string[],
  verbs: readonly string[],
): Required<Pick<CommandSpec, 'path' | 'aliases'>> {
  const [path = [], ...aliases] = verbs.flatMap((verb) => nouns.map((noun) => [noun, verb]))
  return { path, aliases }
}

/** Short forms as in Iggy's own command line. */
export const VERBS = {
  create: ['create', 'c'],
  delete: ['delete', 'd'],
  update: ['update', 'u'],
  get: ['get', 'g'],
  list: ['list', 'l'],
  purge: ['purge', 'p'],
} as const

/** A number is an id, everything else a name. */
export function identifierOf(text: string): number | string {
  return /^\d{1,10}$/.test(text) && Number(text) < 2 ** 32 ? Number(text) : text
}
