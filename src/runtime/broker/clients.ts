/** Connected clients: who they are and for whom they act. */
import type { Clock } from '../../clock.ts'
import type { ClientSession, Dialect } from './api.ts'

export interface ConnectedClient extends ClientSession {
  readonly dialect: Dialect
  userId: number | null
}

export class Clients {
  private readonly clock: Clock
  private readonly hashAddress: (address: string) => number
  private readonly byId = new Map<number, ConnectedClient>()
  private nextId = 1

  /** @param hashAddress XXH32 of "ip:port": Iggy's id of a classic client. */
  constructor(clock: Clock, hashAddress: (address: string) => number) {
    this.clock = clock
    this.hashAddress = hashAddress
  }

  get count(): number {
    return this.byId.size
  }

  open(transport: ClientSession['transport'], address: string, dialect: Dialect): ConnectedClient {
    const client: ConnectedClient = {
      id: this.freeId(dialect === 'classic' ? this.hashAddress(address) : this.nextId++),
      transport,
      address,
      dialect,
      connectedAtUs: this.clock.wallUs(),
      lastSeenUs: this.clock.monotonicUs(),
      onEvicted: null,
      userId: null,
    }
    this.byId.set(client.id, client)
    return client
  }

  /** @returns false when it was closed before. */
  close(id: number): boolean {
    return this.byId.delete(id)
  }

  get(id: number): ConnectedClient | undefined {
    return this.byId.get(id)
  }

  all(): Iterable<ConnectedClient> {
    return this.byId.values()
  }

  /** Two addresses may hash alike, and a number may meet a hash; 0 is nobody. */
  private freeId(wanted: number): number {
    let id = wanted >>> 0
    while (id === 0 || this.byId.has(id)) id = (id + 1) >>> 0
    return id
  }
}
