/** This machine's own vitals as sensor readings: what the demo's devices publish. Reads /proc and /sys, nothing else. */
import { readdirSync, readFileSync, statfsSync } from 'node:fs'

export interface Vital {
  /** SenML name, such as `load_1m`. */
  readonly name: string
  /** SenML unit (RFC 8428, section 12.1): `/` a ratio, `B` bytes, `Cel` degrees Celsius. */
  readonly unit: string
  readonly value: number
}

/** Load averages of 1, 5 and 15 minutes. */
export function parseLoad(text: string): readonly Vital[] {
  const [one, five, fifteen] = text.split(' ').map(Number)
  return [
    { name: 'load_1m', unit: '/', value: one ?? 0 },
    { name: 'load_5m', unit: '/', value: five ?? 0 },
    { name: 'load_15m', unit: '/', value: fifteen ?? 0 },
  ]
}

/** Available and total memory of `/proc/meminfo`, in bytes. */
export function parseMemory(text: string): readonly Vital[] {
  const bytesOf = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024
  return [
    { name: 'memory_available', unit: 'B', value: bytesOf('MemAvailable') },
    { name: 'memory_total', unit: 'B', value: bytesOf('MemTotal') },
  ]
}

export function readLoad(): readonly Vital[] {
  return parseLoad(readFileSync('/proc/loadavg', 'utf8'))
}

export function readMemory(): readonly Vital[] {
  return parseMemory(readFileSync('/proc/meminfo', 'utf8'))
}

/** Free space of the volume that holds `path`, and the thermal zones of the board where it has any. */
export function readDiskAndHeat(path: string): readonly Vital[] {
  const volume = statfsSync(path)
  const disk = [
    { name: 'disk_free', unit: 'B', value: volume.bavail * volume.bsize },
    { name: 'disk_total', unit: 'B', value: volume.blocks * volume.bsize },
  ]
  return [...disk, ...readThermalZones()]
}

function readThermalZones(): readonly Vital[] {
  const root = '/sys/class/thermal'
  let names: string[]
  try {
    names = readdirSync(root).filter((name) => name.startsWith('thermal_zone'))
  } catch {
    return [] // a machine without sensors
  }
  return names.flatMap((name) => {
    try {
      const value = Number(readFileSync(`${root}/${name}/temp`, 'utf8')) / 1000
      return Number.isFinite(value)
        ? [{ name: `temperature_${name.slice('thermal_'.length)}`, unit: 'Cel', value }]
        : []
    } catch {
      return [] // some zones refuse to be read while their device sleeps
    }
  })
}
