/** Members of a consumer group, each a process of the official Python client that the test may freeze and kill. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { CLIENTS_FOLDER } from '../toolchain/cache-folder.ts'
import type { Program } from '../toolchain/program.ts'

export interface Delivery {
  readonly member: number
  readonly partition: number
  readonly offset: number
  readonly text: string
}

export class GroupMembers implements AsyncDisposable {
  /** Every message any member was handed, in the order of arrival. */
  readonly deliveries: Delivery[] = []
  readonly #python: Program
  readonly #place: readonly string[]
  readonly #running = new Map<number, ChildProcess>()
  #startedCount = 0

  /** @param place address, stream, topic and group. */
  constructor(python: Program, place: readonly string[]) {
    this.#python = python
    this.#place = place
  }

  get numbers(): number[] {
    return [...this.#running.keys()]
  }

  /** @returns the number of the new member. */
  start(): number {
    const member = this.#startedCount++
    const program = join(CLIENTS_FOLDER, 'python/group_member.py')
    const child = spawn(this.#python.command, [...this.#python.arguments, program, ...this.#place], {
      env: { ...process.env, ...this.#python.environment },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.startsWith('{')) this.deliveries.push({ member, ...(JSON.parse(line) as Omit<Delivery, 'member'>) })
    })
    this.#running.set(member, child)
    return member
  }

  async kill(member: number): Promise<void> {
    const child = this.#running.get(member)
    this.#running.delete(member)
    if (child === undefined || child.exitCode !== null) return
    const closed = once(child, 'close')
    child.kill('SIGKILL')
    await closed
  }

  freeze(member: number): void {
    this.#running.get(member)?.kill('SIGSTOP')
  }

  thaw(member: number): void {
    this.#running.get(member)?.kill('SIGCONT')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.numbers.map((member) => this.kill(member)))
  }
}
