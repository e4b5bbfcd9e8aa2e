/** Rates from counters that are looked at now and then: over the last ten seconds, so that they stand still. Pure. */

const WINDOW_US = 10e6

export class Rates {
  /** @type {Map<string, { atUs: number, count: number }[]>} */
  #samples = new Map()

  /**
   * @param {string} key @param {number} count a counter that only grows @param {number} atUs
   * @returns {number | null} per second; null at the first look, and after the counter began anew.
   */
  observe(key, count, atUs) {
    const samples = this.#samples.get(key) ?? []
    const newest = samples.at(-1)
    if (newest !== undefined && (count < newest.count || atUs <= newest.atUs)) samples.length = 0
    samples.push({ atUs, count })
    while (samples.length > 2 && atUs - samples[1].atUs >= WINDOW_US) samples.shift()
    this.#samples.set(key, samples)
    const [oldest] = samples
    return samples.length < 2 ? null : ((count - oldest.count) / (atUs - oldest.atUs)) * 1e6
  }

  /** Forgets keys that are not among `keys`. @param {Set<string>} keys */
  keep(keys) {
    for (const key of this.#samples.keys()) if (!keys.has(key)) this.#samples.delete(key)
  }
}
