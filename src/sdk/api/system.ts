/** The server itself: statistics, connected clients, cluster, option catalogue. */
import { CODE } from '../wire/codes.ts'
import type { ResponseBody } from '../wire/commands/index.ts'
import type { ClientDetails, ClientRecord } from '../wire/records.ts'
import type { Requester } from './requester.ts'

export type ServerStats = ResponseBody<typeof CODE.getStats>
export type ClusterMetadata = ResponseBody<typeof CODE.getClusterMetadata>
export type OptionDescription = ResponseBody<typeof CODE.describeOptions>['options'][number]

const SCOPES = { topic: 1, stream: 2, user: 3 } as const

export class SystemApi {
  readonly #requester: Requester

  constructor(requester: Requester) {
    this.#requester = requester
  }

  async ping(): Promise<void> {
    await this.#requester.request(CODE.ping, null)
  }

  async stats(): Promise<ServerStats> {
    return await this.#requester.request(CODE.getStats, null)
  }

  async me(): Promise<ClientDetails> {
    return await this.#requester.request(CODE.getMe, null)
  }

  async client(clientId: number): Promise<ClientDetails | null> {
    return await this.#requester.request(CODE.getClient, { clientId })
  }

  async clients(): Promise<readonly ClientRecord[]> {
    return (await this.#requester.request(CODE.getClients, null)).clients
  }

  async cluster(): Promise<ClusterMetadata> {
    return await this.#requester.request(CODE.getClusterMetadata, null)
  }

  /** Newer generation only. @throws {EdgeError} EDGE_COMMAND_UNKNOWN on older servers. */
  async describeOptions(scope: keyof typeof SCOPES): Promise<readonly OptionDescription[]> {
    return (await this.#requester.request(CODE.describeOptions, { scope: SCOPES[scope] })).options
  }

  /** @returns a ZIP file with what the server knows of itself. */
  async snapshot(compression = 2, types: readonly number[] = [100]): Promise<Uint8Array> {
    return (await this.#requester.request(CODE.getSnapshot, { compression, types })).zipBytes
  }
}
