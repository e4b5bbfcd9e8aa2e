/**
 * Gives memory back once the edge has nothing to do. V8 collects when something is allocated, so an idle process keeps what
 * its start, or its last work, left behind: code that ran once, young generation, pages set aside. Of 22 MiB that the idle
 * executable held privately, 3 went by one collection (35 ms, 60 ms of CPU on 2.1 GHz).
 */
import { performance } from 'node:perf_hooks'
import { collectEverything } from '../../garbage.ts'
import { programPagesUnmapper } from './program-pages.ts'

/** How often it is looked whether there was work. */
const CHECK_INTERVAL_MS = 5000
/** Share of an interval in which the event loop worked: nothing to do up to the first, work from the second on. */
export const IDLE_SHARE_MAX = 0.02
export const WORK_SHARE_MIN = 0.2
/** Work that comes and goes is not slowed down by compiling its code again more often than this. */
export const COLLECTION_INTERVAL_MS = 5 * 60_000

export interface IdleCollectionOptions {
  readonly collect: () => void
  /** Milliseconds of a clock that never goes back. */
  readonly nowMs: () => number
}

/** Decides when to collect: at the first idle interval after a start or after work, and never often. */
export class IdleCollection {
  readonly #options: IdleCollectionOptions
  #hasWorked = true
  #nextMs = 0

  constructor(options: IdleCollectionOptions) {
    this.#options = options
  }

  /** @param workedShare of the interval that has just passed, 0 to 1. */
  onInterval(workedShare: number): void {
    if (workedShare >= WORK_SHARE_MIN) this.#hasWorked = true
    const nowMs = this.#options.nowMs()
    if (!this.#hasWorked || workedShare > IDLE_SHARE_MAX || nowMs < this.#nextMs) return
    this.#hasWorked = false
    this.#nextMs = nowMs + COLLECTION_INTERVAL_MS
    this.#options.collect()
  }
}

/** @returns what ends it; it keeps no process alive. */
export function collectWhenIdle(): () => void {
  const collect = (): void => {
    const unmapProgramPages = programPagesUnmapper()
    collectEverything()
    unmapProgramPages()
  }
  const collection = new IdleCollection({ collect, nowMs: () => performance.now() })
  let before = performance.eventLoopUtilization()
  const timer = setInterval(() => {
    const { utilization } = performance.eventLoopUtilization(before)
    before = performance.eventLoopUtilization()
    collection.onInterval(utilization)
  }, CHECK_INTERVAL_MS)
  timer.unref()
  return () => clearInterval(timer)
}
