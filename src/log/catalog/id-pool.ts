/** Finds the lowest free id, from 0, as Iggy gives them. Pure. Reads the map of what is used; remembers only where to look. */
export class IdPool {
  readonly #used: { has(id: number): boolean }
  /** Nothing below it is free. */
  #from = 0

  constructor(used: { has(id: number): boolean }) {
    this.#used = used
  }

  lowest(): number {
    while (this.#used.has(this.#from)) this.#from++
    return this.#from
  }

  /** `id` is not used any more. */
  free(id: number): void {
    if (id < this.#from) this.#from = id
  }
}
