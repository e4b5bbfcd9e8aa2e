/** Typed reads of a query string. Unknown keys are ignored; of a repeated key the first one counts. Pure. */
import { wrongQuery } from './rejection.ts'

const U32_MAX = 0xffff_ffff
const U64_MAX = 2n ** 64n - 1n

export class Query {
  private readonly params: URLSearchParams

  /** @param text without the question mark; may be empty. */
  constructor(text: string) {
    this.params = new URLSearchParams(text)
  }

  text(name: string): string | undefined {
    return this.params.get(name) ?? undefined
  }

  u32(name: string): number | undefined {
    const value = this.digits(name)
    if (value === undefined) return undefined
    if (value > U32_MAX) throw wrongQuery(`${name}: number too large to fit in target type`)
    return Number(value)
  }

  u64(name: string): bigint | undefined {
    const value = this.digits(name)
    if (value !== undefined && value > U64_MAX) throw wrongQuery(`${name}: number too large to fit in target type`)
    return value
  }

  boolean(name: string): boolean | undefined {
    const value = this.text(name)
    if (value === undefined || value === 'true' || value === 'false')
      return value === undefined ? undefined : value === 'true'
    throw wrongQuery(`${name}: provided string was not \`true\` or \`false\``)
  }

  oneOf<const N extends string>(name: string, names: readonly N[]): N | undefined {
    const value = this.text(name)
    if (value === undefined) return undefined
    const known = names.find((each) => each === value)
    if (known !== undefined) return known
    throw wrongQuery(
      `${name}: unknown variant \`${value}\`, expected ${names.map((each) => `\`${each}\``).join(' or ')}`,
    )
  }

  /** For values without a default. */
  requiredU32(name: string): number {
    const value = this.u32(name)
    if (value === undefined) throw wrongQuery(`missing field \`${name}\``)
    return value
  }

  private digits(name: string): bigint | undefined {
    const value = this.text(name)
    if (value === undefined) return undefined
    if (value === '') throw wrongQuery(`${name}: cannot parse integer from empty string`)
    if (!/^\+?\d{1,40}$/.test(value)) throw wrongQuery(`${name}: invalid digit found in string`)
    return BigInt(value.replace('+', ''))
  }
}
