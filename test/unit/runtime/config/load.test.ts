import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import { formatConfig, loadConfig } from '../../../../src/runtime/config/load.ts'

const load = (text: string | null, environment: Record<string, string> = {}, flags: Record<string, unknown> = {}) =>
  loadConfig({ file: text === null ? null : { name: 'edge.toml', text }, environment, flags })

function problemsOf(run: () => unknown): readonly string[] {
  try {
    run()
  } catch (error) {
    assert.ok(error instanceof EdgeError)
    assert.equal(error.code, 'EDGE_CONFIG_INVALID')
    return error.details.problems as readonly string[]
  }
  return assert.fail('no problem was found')
}

describe('configuration', () => {
  it('is complete without any source', () => {
    const config = load(null)
    assert.equal(config.log.default_durability, 'durable')
    assert.ok(Object.isFrozen(config) && Object.isFrozen(config.log))
  })

  it('lets the environment win over the file and a flag over both', () => {
    const file = '[system]\npath = "from-file"\n[logging]\nlevel = "warn"\n'
    const config = load(
      file,
      { EDGE_SYSTEM__PATH: 'from-environment', EDGE_LOGGING__LEVEL: 'debug' },
      { 'system.path': 'from-flag' },
    )
    assert.equal(config.system.path, 'from-flag')
    assert.equal(config.logging.level, 'debug')
  })

  it('takes the rows of a list from the environment in whatever order they stand there', () => {
    const variables = {
      EDGE_SYNC__UPSTREAMS__1__URL: 'iggy://b:8090',
      EDGE_SYNC__UPSTREAMS__0__URL: 'iggy://a:8090',
      EDGE_SYNC__UPSTREAMS__0__NAME: 'a',
      EDGE_SYNC__UPSTREAMS__1__NAME: 'b',
    }
    const names = load(null, variables)['sync.upstreams'].map(({ name, url }) => `${name} ${url}`)
    assert.deepEqual(names, ['a iggy://a:8090', 'b iggy://b:8090'])
    assert.match(problemsOf(() => load(null, { EDGE_SYNC__UPSTREAMS__1__NAME: 'b' })).join(), /no gaps/)
  })

  it('knows no names but its own, not even those that every object has', () => {
    const problems = problemsOf(() => load('toString = 1\nconstructor = [{ a = 1 }]\n', { EDGE_VALUEOF__0__X: '1' }))
    assert.deepEqual(problems, [
      'toString (edge.toml): unknown key',
      'constructor (edge.toml): unknown key',
      'valueof.0.x (EDGE_VALUEOF__0__X): unknown key',
    ])
    assert.equal(problemsOf(() => load(null, { EDGE_CONSTRUCTOR__0__X: '1' })).length, 1)
  })

  it('takes no empty text for the data folder, which would be the working directory', () => {
    const [problem] = problemsOf(() => load(null, { EDGE_SYSTEM__PATH: '' }))
    assert.equal(problem, 'system.path (EDGE_SYSTEM__PATH): found "", expected a text that is not empty')
  })

  it('reports every problem at once, with path, source, found and expected', () => {
    const problems = problemsOf(() =>
      load('[log]\nsegment_size = "tiny"\ncolour = 1\n', { EDGE_LOGGING__LEVEL: 'loud' }),
    )
    assert.equal(problems.length, 3)
    assert.match(problems.join('\n'), /log\.segment_size \(edge\.toml\): found "tiny", expected a size/)
    assert.match(problems.join('\n'), /log\.colour \(edge\.toml\): unknown key/)
    assert.match(problems.join('\n'), /logging\.level \(EDGE_LOGGING__LEVEL\): found "loud", expected one of/)
  })

  it('suggests the key that was meant', () => {
    assert.match(problemsOf(() => load('[log]\nsegment_sise = "1 MiB"\n'))[0] ?? '', /did you mean log\.segment_size\?/)
    assert.match(problemsOf(() => load('[storage]\npath = "x"\n'))[0] ?? '', /did you mean system\.path\?/)
  })

  it('says where a file stops being TOML', () => {
    assert.match(problemsOf(() => load('[log\nx = 1'))[0] ?? '', /edge\.toml, line 1, column \d+: not TOML/)
  })

  it('ignores environment variables that are not of its form', () => {
    assert.equal(load(null, { EDGE_HOME: 'x', PATH: 'y' }).system.path, 'local_data')
  })

  it('names the variable that was meant when an underscore is missing', () => {
    assert.deepEqual(
      problemsOf(() => load(null, { EDGE_TCP_ADDRESS: '127.0.0.1:1' })),
      ['EDGE_TCP_ADDRESS: unknown variable; did you mean EDGE_TCP__ADDRESS?'],
    )
  })

  it('says what a section is where a value or a list stands in its place', () => {
    assert.deepEqual(
      problemsOf(() => load('tcp = 5')),
      ['tcp (edge.toml): found a value, expected a section [tcp]'],
    )
    assert.deepEqual(
      problemsOf(() => load('[[tcp]]\naddress = "x"')),
      ['tcp (edge.toml): found a list, expected a section [tcp]'],
    )
    const list = 'expected a list of sections, each beginning with [[sync.upstreams]]'
    for (const text of ['[sync]\nupstreams = 5', '[sync.upstreams]\nname = "a"'])
      assert.ok(problemsOf(() => load(text))[0]?.endsWith(list), text)
  })

  it('reads back what it writes', () => {
    const config = load(null, { EDGE_SYSTEM__PATH: 'a "quoted" folder' })
    assert.deepEqual(load(formatConfig(config)), config)
  })
})
