/** Which known words somebody meant who mistyped them. Pure. */

const MAX_DISTANCE = 2
/** A short word is near to too many others. */
const LETTERS_PER_ERROR = 3

/**
 * @param known several words each, compared word by word as far as both go.
 * @returns the words of the nearest one that go in the place of the given ones; undefined when none is near.
 */
export function nearestWords(
  given: readonly string[],
  known: Iterable<readonly string[]>,
): readonly string[] | undefined {
  let nearest: { readonly words: readonly string[]; readonly distance: number } | undefined
  for (const each of known) {
    const words = each.slice(0, given.length)
    const distances = words.map((word, at) => distanceWithin(given[at] ?? '', word))
    const distance = distances.reduce((sum, one) => sum + one, 0)
    if (words.length > 0 && distance < (nearest?.distance ?? Number.POSITIVE_INFINITY)) nearest = { words, distance }
  }
  return nearest?.words
}

/** @returns infinity for words that are not near. */
function distanceWithin(given: string, word: string): number {
  const limit = Math.min(MAX_DISTANCE, Math.floor(word.length / LETTERS_PER_ERROR))
  if (Math.abs(given.length - word.length) > limit) return Number.POSITIVE_INFINITY
  const distance = editDistance(given, word)
  return distance <= limit ? distance : Number.POSITIVE_INFINITY
}

/** Letters left out, added, replaced, or swapped with their neighbour. */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1]
      const replaced = (last[column - 1] ?? 0) + (isSame ? 0 : 1)
      const isSwapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      const swapped = isSwapped ? (beforeLast[column - 2] ?? 0) + 1 : replaced
      current.push(Math.min((last[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, replaced, swapped))
    }
    beforeLast = last
    last = current
  }
  return last[to.length] ?? 0
}
