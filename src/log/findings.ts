/** What went wrong, for logs, page and `check`: each finding is logged when it comes and kept, up to a bound. */
import type { Clock } from '../clock.ts'
import type { Logger } from '../logger.ts'
import type { LogFinding } from './api.ts'
import type { ReportFinding } from './ports.ts'

const MAX_FINDINGS = 256

export class Findings {
  readonly #clock: Clock
  readonly #logger: Logger
  #list: LogFinding[] = []

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock
    this.#logger = logger
  }

  /** Newest last. */
  get list(): readonly LogFinding[] {
    return this.#list
  }

  readonly report: ReportFinding = (finding) => {
    this.#logger[finding.level](finding.event, { ...finding.fields, text: finding.text })
    this.#list = [...this.#list.slice(1 - MAX_FINDINGS), { ...finding, atUs: this.#clock.wallUs() }]
  }
}
