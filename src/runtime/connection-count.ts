/** Connections of one listener against its limit. Pure. */

/** How full a listener is. */
export interface Occupancy {
  readonly openConnections: number
  readonly maxConnections: number
  /** Turned away since the start, because there were too many. */
  readonly refusedConnections: number
}

export class ConnectionCount implements Occupancy {
  readonly maxConnections: number
  openConnections = 0
  refusedConnections = 0

  constructor(maxConnections: number) {
    this.maxConnections = maxConnections
  }

  /** One more comes. @returns whether it is taken: then it `left` some day. */
  enter(): boolean {
    if (this.openConnections >= this.maxConnections) {
      this.refusedConnections++
      return false
    }
    this.openConnections++
    return true
  }

  left(): void {
    this.openConnections--
  }
}
