/**
 * A drop-in for Apache's server binary: it is started without a command, so `run` is meant where the name or the environment
 * says that a server was expected. Pure.
 */

/** What Apache's server takes; without a command they can only be meant for `run`. */
const SERVER_FLAGS: ReadonlySet<string> = new Set(['--with-default-root-credentials', '--fresh', '-f'])

/**
 * @param name path by which the process was started.
 * @param environment `IGGY_…` of a server; `IGGY_URL` and the like are a client's.
 */
export function impliedWords(
  words: readonly string[],
  name: string,
  environment: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const flags = withoutProvider(words)
  if (flags.some((word) => !SERVER_FLAGS.has(word))) return words
  const isServerName = name.slice(name.lastIndexOf('/') + 1) === 'iggy-server'
  const isMeant = words.length > 0 || isServerName || Object.keys(environment).some(isServerVariable)
  return isMeant ? ['run', ...flags] : words
}

/** `--config-provider file`: the only one that Apache's server has, so it says nothing. */
function withoutProvider(words: readonly string[]): readonly string[] {
  const isProvider = (word: string | undefined) => word === '--config-provider' || word === '-c'
  return words.filter(
    (word, index) =>
      word !== '--config-provider=file' &&
      !(isProvider(word) && words[index + 1] === 'file') &&
      !(word === 'file' && isProvider(words[index - 1])),
  )
}

const CLIENT_VARIABLES: ReadonlySet<string> = new Set(['IGGY_URL', 'IGGY_USERNAME', 'IGGY_PASSWORD', 'IGGY_HOME'])

export function isServerVariable(name: string): boolean {
  return name.startsWith('IGGY_') && !CLIENT_VARIABLES.has(name)
}
