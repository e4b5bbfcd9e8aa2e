/** Streams. Names are 1 to 255 bytes; a number as identifier is an id, a string a name. */
import { CODE } from '../wire/codes.ts'
import { NO_OPTIONS } from '../wire/options.ts'
import type { Identifier } from '../wire/primitives.ts'
import type { StreamDetails, StreamRecord } from '../wire/records.ts'
import type { Requester } from './requester.ts'

export class StreamsApi {
  readonly #requester: Requester

  constructor(requester: Requester) {
    this.#requester = requester
  }

  async list(): Promise<readonly StreamRecord[]> {
    return (await this.#requester.request(CODE.getStreams, null)).streams
  }

  /** @returns null when there is no such stream. */
  async get(stream: Identifier): Promise<StreamDetails | null> {
    return await this.#requester.request(CODE.getStream, { stream })
  }

  /** @throws {EdgeError} EDGE_STREAM_NAME_TAKEN. */
  async create(name: string): Promise<StreamRecord> {
    return await this.#requester.request(CODE.createStream, { name, options: NO_OPTIONS })
  }

  /** @throws {EdgeError} EDGE_STREAM_NOT_FOUND, EDGE_STREAM_NAME_TAKEN. */
  async rename(stream: Identifier, name: string): Promise<void> {
    await this.#requester.request(CODE.updateStream, { stream, name, options: NO_OPTIONS })
  }

  async delete(stream: Identifier): Promise<void> {
    await this.#requester.request(CODE.deleteStream, { stream })
  }

  /** Drops all messages of all its topics. */
  async purge(stream: Identifier): Promise<void> {
    await this.#requester.request(CODE.purgeStream, { stream })
  }
}
