/** What the group test does over HTTP: make the topic, load it with acknowledged messages, look at the group. */

const REQUEST_TIMEOUT_MS = 5000

export class GroupOverHttp {
  /** Texts of the messages the server acknowledged. */
  readonly acked: string[] = []
  readonly #base: string
  readonly #partitionCount: number
  #token = ''
  #sentCount = 0

  constructor(address: string, partitionCount: number) {
    this.#base = `http://${address}`
    this.#partitionCount = partitionCount
  }

  async createGroup(): Promise<void> {
    await this.#call('POST', '/streams', { name: 'load' })
    const topic = { name: 'events', partitions_count: this.#partitionCount }
    await this.#call('POST', '/streams/load/topics', topic)
    await this.#call('POST', '/streams/load/topics/events/consumer-groups', { name: 'workers' })
  }

  /** Sends one message to each partition; those that were acknowledged are remembered. Never throws. */
  async sendRound(): Promise<void> {
    const round = this.#sentCount++
    await Promise.all(
      Array.from({ length: this.#partitionCount }, async (_, partition) => {
        const text = `${round}/${partition}`
        const value = Buffer.alloc(4)
        value.writeUInt32LE(partition)
        const messages = [{ payload: Buffer.from(text).toString('base64') }]
        const partitioning = { kind: 'partition_id', value: value.toString('base64') }
        try {
          await this.#call('POST', '/streams/load/topics/events/messages', { partitioning, messages })
          this.acked.push(text)
        } catch {
          // The server is away: nothing was promised for this one.
        }
      }),
    )
  }

  /** Partition counts of the members, in order. Empty while the server is away. */
  async shares(): Promise<number[]> {
    try {
      const group = (await this.#call('GET', '/streams/load/topics/events/consumer-groups/workers')) as {
        members: { partitions: number[] }[]
      }
      return group.members.map((member) => member.partitions.length).sort()
    } catch {
      return []
    }
  }

  async #call(method: string, path: string, body?: unknown): Promise<unknown> {
    if (this.#token === '') await this.#login()
    const response = await this.#fetch(method, path, body)
    if (response.status === 401) this.#token = ''
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    const text = await response.text()
    return text === '' ? undefined : JSON.parse(text)
  }

  async #login(): Promise<void> {
    const response = await this.#fetch('POST', '/users/login', { username: 'iggy', password: 'iggy' })
    const { access_token } = (await response.json()) as { access_token: { token: string } }
    this.#token = access_token.token
  }

  #fetch(method: string, path: string, body: unknown): Promise<Response> {
    return fetch(`${this.#base}${path}`, {
      method,
      headers: {
        'content-type': 'application/json',
        ...(this.#token === '' ? {} : { authorization: `Bearer ${this.#token}` }),
      },
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  }
}
