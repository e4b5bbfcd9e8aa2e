/**
 * Wall time of readings that are stamped with the device's uptime. Pure.
 *
 * For the boot a reading was taken in, the first of these that is known: the device's own mapping where it comes from a
 * trustworthy source (edge, NTP, GNSS); the edge's (its time when a frame gave the uptime); the device's real time clock
 * where it is plausible. None: the time of arrival.
 */
import { EARLIEST_WALL_US } from '../../../clock.ts'
import type { SourcedTime, When } from '../../../sdk/wire/edge/index.ts'
import type { Moment } from './exchange.ts'

/** Boots whose mapping is remembered in a session: a queue seldom spans more. */
const MAX_BOOTS = 8
const SOURCE_RTC = 0
const DAY_US = 86_400_000_000n
const LATEST_US = 0xffff_ffff_ffff_ffffn

interface BootMapping {
  /** Wall time at uptime 0, µs. */
  deviceUs?: bigint
  edgeUs?: bigint
  rtcUs?: bigint
}

export interface OriginTime {
  readonly originUs: bigint
  readonly isTrusted: boolean
}

export class DeviceClock {
  readonly #boots = new Map<number, BootMapping>()
  #currentBoot = 0

  /** Boot 0 stands for a device that does not count them. */
  begin(boot: number | undefined): void {
    this.#currentBoot = boot ?? 0
  }

  /** The device says what the wall time was at uptime 0 of a boot; null takes it back. */
  declare(boot: number, wall: SourcedTime | null, now: Moment): void {
    const mapping = this.#mapping(boot)
    delete mapping.deviceUs
    delete mapping.rtcUs
    if (wall === null) return
    const wallUs = BigInt(wall.seconds) * 1_000_000n + BigInt(wall.milliseconds) * 1000n
    if (wall.source !== SOURCE_RTC) mapping.deviceUs = wallUs
    else if (wallUs >= EARLIEST_WALL_US && wallUs <= now.wallUs + DAY_US) mapping.rtcUs = wallUs
  }

  declareCurrent(wall: SourcedTime | null, now: Moment): void {
    this.declare(this.#currentBoot, wall, now)
  }

  /** The device's uptime as a frame of this moment gave it. */
  observe(uptimeMs: number, now: Moment): void {
    if (now.isWallTrusted) this.#mapping(this.#currentBoot).edgeUs = now.wallUs - BigInt(uptimeMs) * 1000n
  }

  originOf(when: When, now: Moment): OriginTime {
    if (when === null) return { originUs: now.wallUs, isTrusted: now.isWallTrusted }
    const isPair = typeof when === 'object'
    const mapping = this.#boots.get(isPair ? when.boot : this.#currentBoot)
    const bootUs = mapping?.deviceUs ?? mapping?.edgeUs ?? mapping?.rtcUs
    const arrival = { originUs: now.wallUs, isTrusted: false }
    if (bootUs === undefined) return arrival
    const originUs = bootUs + BigInt(isPair ? when.uptimeMs : when) * 1000n
    // Uptimes that no device has lead to times that no message can carry.
    return originUs >= 0n && originUs <= LATEST_US ? { originUs, isTrusted: true } : arrival
  }

  #mapping(boot: number): BootMapping {
    const known = this.#boots.get(boot)
    if (known !== undefined) return known
    const oldest = [...this.#boots.keys()].find((one) => one !== this.#currentBoot)
    if (this.#boots.size >= MAX_BOOTS && oldest !== undefined) this.#boots.delete(oldest)
    const mapping: BootMapping = {}
    this.#boots.set(boot, mapping)
    return mapping
  }
}
