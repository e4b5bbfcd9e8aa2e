/** The result of `bench`, as JSON has it: what a server does not tell is not there. Types only. */
import type { Promised } from './plan.ts'

export interface ScenarioReport {
  readonly name: string
  readonly title: string
  readonly promise?: Promised
  /** Messages a request. */
  readonly batch: number
  readonly seconds: number
  readonly messages: number
  readonly messages_per_second: number
  /** Of a request. */
  readonly p50_us: number
  readonly p99_us: number
  /** To the device, by everybody who used the server meanwhile. */
  readonly written_bytes_per_second?: number
  readonly syncs_per_second?: number
  /** Ended before its time, since it had stored all that one measurement may. */
  readonly stopped_at_bytes?: number
}

export interface BenchReport {
  readonly place: BenchPlace
  readonly connections: number
  readonly size_bytes: number
  readonly scenarios: readonly ScenarioReport[]
  /** Of the server's process, at the end. */
  readonly memory_bytes?: number
  /** Bytes a day that may be written to the device, where there is such a budget and it was used up. */
  readonly flash_budget_used_up_bytes?: number
}

export type BenchPlace =
  | { readonly kind: 'own'; readonly folder: string }
  | { readonly kind: 'server'; readonly address: string }
