import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import { COMMANDS as ALL_COMMANDS } from '../../../../src/runtime/cli/commands.ts'
import { type CommandSpec, isUsageError, parseCommandLine, type Values } from '../../../../src/runtime/cli/grammar.ts'

const stream = { name: 'stream', summary: '', isPositional: true, isRequired: true }
const COMMANDS: readonly CommandSpec[] = [
  {
    path: ['topic', 'create'],
    summary: 'Create a topic.',
    arguments: [
      stream,
      { name: 'name', summary: '', isPositional: true, isRequired: true },
      { name: 'partitions', summary: '', isPositional: true },
      { name: 'compression', summary: '', isPositional: true },
      { name: 'set', summary: '', isVariadic: true },
    ],
  },
  {
    path: ['topic', 'get'],
    aliases: [['topic', 'stats']],
    summary: 'Show a topic.',
    arguments: [stream, { name: 'topic', summary: '', isPositional: true }],
  },
  {
    path: ['message', 'send'],
    summary: 'Send.',
    arguments: [
      stream,
      { name: 'messages', summary: '', isPositional: true, isVariadic: true },
      { name: 'key', aliases: ['m', 'partition-key'], summary: '' },
    ],
  },
]
const SHARED: CommandSpec = {
  path: ['offset', 'get'],
  aliases: [['o', 'g']],
  summary: 'Show an offset.',
  arguments: [
    { name: 'consumer', summary: '', isPositional: true, isRequired: true },
    stream,
    { name: 'partition', aliases: ['p'], summary: '', isPositional: true, isRequired: true },
    { name: 'consumer-group', summary: '', insteadOf: 'consumer' },
  ],
  common: [{ name: 'password', aliases: ['p'], summary: '' }],
}
const COMMON = [
  { name: 'username', aliases: ['u'], summary: '' },
  { name: 'quiet', aliases: ['q'], isFlag: true, summary: '' },
]

function parse(line: string): { path: string; values: Values } {
  const parsed = parseCommandLine(line.split(' ').filter(Boolean), COMMANDS, COMMON)
  assert.ok('command' in parsed, `no command: ${line}`)
  return { path: parsed.command.path.join(' '), values: parsed.values }
}

describe('command line grammar', () => {
  it('takes the same arguments by place and by name', () => {
    for (const line of [
      'topic create orders events 4 none',
      'topic create --stream orders events --partitions 4 --compression none',
    ]) {
      const { path, values } = parse(line)
      assert.equal(path, 'topic create')
      assert.deepEqual(
        ['stream', 'name', 'partitions', 'compression'].map((name) => values.text(name)),
        ['orders', 'events', '4', 'none'],
      )
    }
  })

  it('takes options before the command, with equals signs and short names', () => {
    const { values } = parse('-u root --quiet message send orders -m=k a b -- --c')
    assert.equal(values.text('username'), 'root')
    assert.ok(values.has('quiet'))
    assert.equal(values.text('key'), 'k')
    assert.deepEqual(values.all('messages'), ['a', 'b', '--c'])
  })

  it('lets no option of any command take the next one for its value', () => {
    for (const { path, arguments: own, common = [] } of ALL_COMMANDS) {
      for (const { name } of [...own, ...common].filter(({ isFlag }) => isFlag !== true)) {
        const words = [...path, `--${name}`, '--json']
        assert.throws(() => parseCommandLine(words, ALL_COMMANDS, []), /needs a value, found --json/, words.join(' '))
      }
    }
  })

  it('takes a value that begins with a dash behind an equals sign, and a dash alone', () => {
    assert.equal(parse('message send orders --key=-x').values.text('key'), '-x')
  })

  it('takes a switch that is given a value by its value', () => {
    const isQuiet = (word: string) => parse(`topic get s ${word}`).values.has('quiet')
    assert.deepEqual(['--quiet', '-q', '--quiet=true', '--quiet=false', ''].map(isQuiet), [
      true,
      true,
      true,
      false,
      false,
    ])
    assert.equal(parse('message send orders -m=-1').values.text('key'), '-1')
    assert.equal(parse('message send orders --key -').values.text('key'), '-')
  })

  it('finds a command by its other name', () => {
    assert.equal(parse('topic stats --stream orders events').path, 'topic get')
  })

  it('collects repeated options', () => {
    assert.deepEqual(parse('topic create s t --set a=1 --set b=2').values.all('set'), ['a=1', 'b=2'])
  })

  for (const [line, text] of [
    ['topic create orders', /NAME is missing: iggy-edge topic create STREAM NAME \[PARTITIONS\]/],
    ['topic create orders events 4 none extra', /unexpected "extra"/],
    ['topic create orders events --colour red', /unknown option --colour; see iggy-edge topic create --help/],
    ['topic create orders events --partition=4', /unknown option --partition=4; did you mean `--partitions`\?/],
    ['topic create orders events --usernaem root', /unknown option --usernaem; did you mean `--username`\?/],
    ['topic create orders events --hlep', /did you mean `--help`\?/],
    ['topic create orders events -x', /unknown option -x; see/],
    ['message send orders --key', /--key needs a value/],
    ['topic get s --quiet=no', /--quiet: found "no", expected no value, true or false/],
    ['message send orders --key --quiet', /--key needs a value, found --quiet; .* --key=--quiet/],
    ['message send orders -m -q', /-m needs a value, found -q/],
    ['message send orders --key -- a', /--key needs a value, found --;/],
    ['--username -q message send orders', /--username needs a value, found -q/],
  ] as const) {
    it(`explains: ${line}`, () => assert.throws(() => parse(line), text))
  }

  it('gives an option before the command its shared meaning, and behind it that of the command', () => {
    const parsed = parseCommandLine(['-p', 'secret', 'o', 'g', 'c', 's', '-p', '3'], [SHARED], [])
    assert.ok('values' in parsed)
    assert.equal(parsed.values.text('password'), 'secret')
    assert.equal(parsed.values.text('partition'), '3')
  })

  it('takes no value of an option for a command word', () => {
    const parsed = parseCommandLine(['--password', 'offset', 'offset', 'get', 'c', 's', '0'], [SHARED], [])
    assert.ok('values' in parsed)
    assert.equal(parsed.values.text('password'), 'offset')
  })

  it('no longer waits for what another option stands in for', () => {
    const parsed = parseCommandLine(['offset', 'get', '--consumer-group', 'g', 's', '0'], [SHARED], [])
    assert.ok('values' in parsed)
    assert.equal(parsed.values.text('consumer'), undefined)
    assert.equal(parsed.values.text('stream'), 's')
    assert.equal(parsed.values.text('partition'), '0')
  })

  it('tells wrong words from a wrong configuration', () => {
    assert.throws(
      () => parseCommandLine(['offset', 'get'], [SHARED], []),
      (error: unknown) => error instanceof EdgeError && isUsageError(error),
    )
  })

  it('takes the word help for the option', () => {
    for (const line of ['topic create', 'topic', 'paint', '']) {
      const words = line.split(' ').filter(Boolean)
      const option = parseCommandLine([...words, '--help'], COMMANDS, COMMON)
      assert.deepEqual(parseCommandLine(['help', ...words], COMMANDS, COMMON), option)
      assert.ok('help' in option && !option.isError)
    }
  })

  it('says of options alone that the command is missing', () => {
    const parsed = parseCommandLine(['--quiet'], COMMANDS, COMMON)
    assert.ok('help' in parsed && parsed.isError)
    assert.match(parsed.help, /^iggy-edge: no command beside --quiet\n/)
  })

  it('names an option that nothing has, with no command beside it', () => {
    for (const [word, told] of [
      ['--fresh-start', 'unknown option --fresh-start; see iggy-edge --help'],
      ['--versio', 'unknown option --versio; did you mean `--version`?'],
    ] as const)
      assert.throws(() => parseCommandLine([word], COMMANDS, COMMON), { message: told })
  })

  it('says which command was meant when one is near', () => {
    for (const [line, told] of [
      ['topci create orders events', '"topci create"; did you mean `topic create`?'],
      ['topic craete orders', '"topic craete"; did you mean `topic create`?'],
      ['topics', '"topics"; did you mean `topic`?'],
      ['mesage sent orders', '"mesage sent"; did you mean `message send`?'],
    ]) {
      const parsed = parseCommandLine((line ?? '').split(' '), COMMANDS, COMMON)
      assert.ok('help' in parsed && parsed.isError)
      assert.equal(parsed.help.split('\n')[0], `iggy-edge: unknown command ${told}`)
      assert.doesNotMatch(parsed.help, /Create a topic/)
    }
  })

  it('shows what there is when the words choose nothing, and says so', () => {
    const parsed = parseCommandLine(['topic', 'paint'], COMMANDS, COMMON)
    assert.ok('help' in parsed && parsed.isError)
    assert.match(parsed.help, /unknown command "topic paint"/)
    assert.match(parsed.help, /topic create +Create a topic\./)
    assert.doesNotMatch(parsed.help, /message/)
  })

  it('gives help when asked, which is no error', () => {
    for (const words of [[], ['help'], ['--help'], ['topic', 'create', '--help']]) {
      const parsed = parseCommandLine(words, COMMANDS, COMMON)
      assert.ok('help' in parsed && !parsed.isError, words.join(' '))
    }
  })

  it('checks numbers against their bounds', () => {
    const { values } = parse('topic create s t 1001')
    assert.throws(() => values.integer('partitions', 1, { min: 0, max: 1000 }), /partitions: found "1001"/)
    assert.equal(values.integer('missing', 7, { min: 0, max: 10 }), 7)
  })
})
