/** The project's own sources as data, for tests that read them: files, their text, what they import. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'

export const ROOT = join(import.meta.dirname, '../..')

export interface SourceFile {
  /** From the root of the checkout, with `/`. */
  readonly path: string
  readonly text: string
  /** The text with comments and the insides of strings blanked out: what is left is code. */
  readonly code: string
  readonly imports: readonly SourceImport[]
}

export interface SourceImport {
  /** As written. */
  readonly specifier: string
  /** Path from the root for files of ours, else undefined. */
  readonly path: string | undefined
  readonly isTypeOnly: boolean
}

/** Every file below `folder` that `isWanted`, sorted; none when there is no such folder. */
export function filesBelow(folder: string, isWanted: (path: string) => boolean = () => true): string[] {
  const start = join(ROOT, folder)
  if (!existsSync(start)) return []
  return readdirSync(start, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter(isWanted)
    .sort()
}

/** Names of the files directly in the root. */
export function rootFiles(): string[] {
  const entries = readdirSync(ROOT, { withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => entry.name)
}

export function textOf(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

/** TypeScript sources below `folder`. */
export function sourcesBelow(folder: string): SourceFile[] {
  return filesBelow(folder, (path) => path.endsWith('.ts')).map((path) => {
    const text = textOf(path)
    return { path, text, code: codeOf(text), imports: importsOf(path, text) }
  })
}

/** Comments, then strings on one line, then templates (their expressions go with them). */
const NOT_CODE = /\/\*[\s\S]*?\*\/|(?<![:\\])\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g

function codeOf(text: string): string {
  return text.replace(NOT_CODE, (part) => (/^["'`]/.test(part) ? "''" : part.replace(/[^\n]/g, ' ')))
}

const STATIC_IMPORT = /^\s*(?:import|export)\s+(type\s)?(?:[^'"`;]*?\sfrom\s+)?'([^']+)'/gm
const DYNAMIC_IMPORT = /\bimport\(\s*'([^']+)'\s*\)/g

function importsOf(path: string, text: string): SourceImport[] {
  const withoutComments = text.replace(/\/\*[\s\S]*?\*\/|(?<![:'"])\/\/[^\n]*/g, '')
  const found = [
    ...[...withoutComments.matchAll(STATIC_IMPORT)].map((match) => ({
      specifier: match[2],
      isTypeOnly: match[1] !== undefined,
    })),
    ...[...withoutComments.matchAll(DYNAMIC_IMPORT)].map((match) => ({ specifier: match[1], isTypeOnly: false })),
  ]
  return found.map(({ specifier = '', isTypeOnly }) => {
    const target = specifier.startsWith('.') ? relative(ROOT, join(ROOT, dirname(path), specifier)) : undefined
    return { specifier, path: target?.split(sep).join('/'), isTypeOnly }
  })
}
