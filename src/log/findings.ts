/**
 * What went wrong, for logs, page and `check`: each finding is logged when it comes and kept, up to a bound. One that goes
 * on, such as a loss that grows for days, stays one finding and is logged once an hour.
 */
import type { Clock } from '../clock.ts'
import type { Logger } from '../logger.ts'
import type { LogFinding } from './api.ts'
import type { ReportFinding } from './ports.ts'

const MAX_FINDINGS = 256
const SAID_AGAIN_AFTER_US = 3600e6

/** The last finding of a series, and when it was logged by the monotonic clock. */
interface Series {
  readonly finding: LogFinding
  readonly loggedUs: number
}

export class Findings {
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #series = new Map<string, Series>()
  #list: LogFinding[] = []

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock
    this.#logger = logger
  }

  /** Newest last. */
  get list(): readonly LogFinding[] {
    return this.#list
  }

  readonly report: ReportFinding = ({ series: name, ...told }) => {
    const finding = { ...told, atUs: this.#clock.wallUs() }
    const nowUs = this.#clock.monotonicUs()
    const earlier = name === undefined ? undefined : this.#series.get(name)
    const isNews = earlier === undefined || nowUs - earlier.loggedUs >= SAID_AGAIN_AFTER_US
    if (isNews) this.#logger[told.level](told.event, { ...told.fields, text: told.text })
    const others = this.#list.filter((each) => each !== earlier?.finding)
    this.#list = [...others.slice(1 - MAX_FINDINGS), finding]
    if (name !== undefined) this.#remember(name, { finding, loggedUs: isNews ? nowUs : earlier.loggedUs })
  }

  /** Of series that newer findings pushed out of the list nothing is kept. */
  #remember(name: string, series: Series): void {
    this.#series.set(name, series)
    if (this.#series.size <= MAX_FINDINGS) return
    const listed = new Set(this.#list)
    for (const [each, { finding }] of this.#series) if (!listed.has(finding)) this.#series.delete(each)
  }
}
