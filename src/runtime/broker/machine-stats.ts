/** Figures of this process and its machine, from `/proc` and the operating system. */
import { readFileSync } from 'node:fs'
import { cpus, freemem, hostname, release, totalmem, type, version } from 'node:os'
import type { Clock } from '../../clock.ts'

export interface MachineStats {
  readonly processId: number
  /** Percent of one processor since the last reading. */
  readonly cpuUsage: number
  /** Percent of all processors, all processes, since the last reading. */
  readonly totalCpuUsage: number
  readonly memoryUsage: number
  readonly totalMemory: number
  readonly availableMemory: number
  readonly runTimeUs: bigint
  readonly startTimeUs: bigint
  readonly readBytes: number
  readonly writtenBytes: number
  readonly hostname: string
  readonly osName: string
  readonly osVersion: string
  readonly kernelVersion: string
  readonly threadsCount: number
}

/** Memory this process may use: a container's limit where there is one. */
export function usableMemoryBytes(): number {
  const limit = process.constrainedMemory()
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem()
}

/** Remembers the last reading: usage is what happened since then. */
export function createMachineStats(clock: Clock): { read(): MachineStats } {
  const uptimeUs = Math.round(process.uptime() * 1_000_000)
  const startTimeUs = clock.wallUs() - BigInt(uptimeUs)
  // A clock without a battery is set by years once the network is there: how long we run must not follow it.
  const startedUs = clock.monotonicUs() - uptimeUs
  let lastWallUs = clock.monotonicUs()
  let lastProcess = process.cpuUsage()
  let lastMachine = machineTicks()
  return {
    read() {
      const nowUs = clock.monotonicUs()
      const used = process.cpuUsage(lastProcess)
      const ticks = machineTicks()
      const elapsedUs = Math.max(1, nowUs - lastWallUs)
      const elapsedTicks = Math.max(1, ticks.total - lastMachine.total)
      const cpuUsage = (100 * (used.user + used.system)) / elapsedUs
      const totalCpuUsage = (100 * (ticks.busy - lastMachine.busy)) / elapsedTicks
      lastWallUs = nowUs
      lastProcess = process.cpuUsage()
      lastMachine = ticks
      const io = procFields('/proc/self/io')
      return {
        processId: process.pid,
        cpuUsage,
        totalCpuUsage,
        memoryUsage: residentBytes(),
        totalMemory: totalmem(),
        availableMemory: freemem(),
        runTimeUs: BigInt(Math.round(nowUs - startedUs)),
        startTimeUs,
        readBytes: io.get('rchar') ?? 0,
        writtenBytes: io.get('wchar') ?? 0,
        hostname: hostname(),
        osName: type(),
        osVersion: version(),
        kernelVersion: release(),
        threadsCount: procFields('/proc/self/status').get('Threads') ?? 0,
      }
    },
  }
}

/** Memory of this process; 0 where the system does not tell: no `/proc`, or no file can be opened any more. */
export function residentBytes(): number {
  return known(() => process.memoryUsage.rss(), 0)
}

/** Figures that cannot be read keep nobody from reading the others. */
function known<T>(read: () => T, otherwise: T): T {
  try {
    return read()
  } catch {
    return otherwise
  }
}

function machineTicks(): { busy: number; total: number } {
  let busy = 0
  let total = 0
  for (const { times } of known(cpus, [])) {
    const working = times.user + times.nice + times.sys + times.irq
    busy += working
    total += working + times.idle
  }
  return { busy, total }
}

/** `name: number` lines; empty where there is no `/proc`. */
function procFields(path: string): ReadonlyMap<string, number> {
  const text = known(() => readFileSync(path, 'utf8'), '')
  return new Map([...text.matchAll(/^(\w+):\s+(\d+)/gm)].map(([, name, value]) => [name ?? '', Number(value)]))
}
