/** What commands do on a running edge, and how they end. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { runCommand, runHere, startCommand, wordsOf } from '../../support/cli-runner.ts'
import { EDGE_COMMAND, type EdgeProcess, LOOPBACK_ENVIRONMENT, startEdgeProcess } from '../../support/edge-process.ts'

let folder = ''
let edge: EdgeProcess
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edge-cli-'))
  edge = await startEdgeProcess({ dataPath: join(folder, 'data') })
  await here('stream create s')
  await here('topic create s t 2')
})
after(async () => {
  await edge[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

const user = { IGGY_USERNAME: 'iggy', IGGY_PASSWORD: 'iggy' }
const here = (line: string) => runHere([...wordsOf(line), '--http-url', edge.http], { ...user, IGGY_URL: edge.tcp })
const json = async (line: string) => JSON.parse(await here(`${line} --output json`)) as Record<string, unknown>

describe('commands on a running edge', () => {
  it('give programs JSON with the same facts', async () => {
    const topic = await json('topic get s t')
    assert.equal(topic.name, 't')
    assert.deepEqual(
      (topic.partitions as { partition: number }[]).map(({ partition }) => partition),
      [0, 1],
    )
  })

  it('set options of topics by their kind', async () => {
    await here('topic create s options 1 none 1day -m 2GB --set durability=buffered --set dedup_max_entries=5')
    const topic = await json('topic get s options')
    assert.equal(topic.message_expiry, 86_400_000_000)
    assert.equal(topic.max_size, 2_000_000_000)
    await assert.rejects(here('topic create s other 1 --set colour=red'), /option "colour" is not known/)
    await assert.rejects(here('topic create s other 1 none 1fortnight'), /expiry: found "1fortnight"/)
  })

  it('warn in one line of a topic without partitions, and of no other', async () => {
    const lines = (await here('topic create s bare 0')).split('\n')
    assert.equal(lines.length, 2)
    assert.match(lines[1] ?? '', /no messages without a partition: iggy-edge partition create s bare COUNT/)
    assert.equal((await here('topic create s usual 1')).split('\n').length, 1)
  })

  it('make users with rights, change and delete them', async () => {
    await here('user create ann secret --global-permissions r_srv --stream-permissions 0:r_top#0:p_msg')
    assert.equal((await json('user get ann')).permissions, 'read_servers 0:read_topics#0:poll_messages')
    await here('user permissions ann')
    assert.equal((await json('user get ann')).permissions, '')
    await here('user password ann secret secret2')
    await here('user name ann anna')
    await here('user status anna inactive')
    assert.equal((await json('user get anna')).status, 'inactive')
    await here('user delete anna')
    await assert.rejects(here('user get anna'), { code: 'EDGE_USER_NOT_FOUND' })
  })

  it('make personal tokens that log in', async () => {
    const token = await here('token create mine 1day')
    assert.match(await runHere(['me', '--token', token], { IGGY_URL: edge.tcp }), /Transport: tcp/)
    assert.match(await here('pat list'), /mine/)
    await here('pat delete mine')
  })

  it('print a new token also where they are to be quiet, since nobody can see it again', async () => {
    assert.match(await here('token create -q unseen'), /^\S{20,}$/)
    assert.match(await here('token create-device -q hidden --device dev-1 --publish s/t'), /^\S{20,}$/)
    assert.equal(await here('token delete -q unseen'), '')
    await here('token delete-device hidden')
  })

  it('make tokens for devices, and list and delete them', async () => {
    await here(`token create-device pumps --device dev-* --publish 'sensors/*' --subscribe 'commands/*' --any-key`)
    assert.match(await here('token list-devices'), /pumps +iggy +dev-\* +sensors\/\* +commands\/\* +true/)
    await here('token delete-device pumps')
    assert.equal(await here('token list-devices'), 'none')
    await assert.rejects(here('token delete-device pumps'), /"pumps" is not there/)
    assert.equal(await here('device list'), 'none')
    await assert.rejects(here('device forget pump-1'), /"pump-1" is not remembered/)
  })

  it('send headers, and poll them back with offsets and first to last', async () => {
    await here(`message send s t one two --partition 1 --headers 'unit:string:C,n:int32:-5'`)
    const text = await here('message poll s t 1 --first -m 5 --show-headers')
    assert.match(text, /unit:string:C,n:int32:-5 +text +one/)
    assert.doesNotMatch(await here('message poll s t 1 --offset 1 -m 5'), /one/)
    assert.match(await here('message poll s t 1 --last --raw'), /^two$/)
  })

  it('stores how far a group has read only when the messages are where they were to go', async () => {
    await here('topic create s once 1')
    await here('message send s once kept')
    const poll = 'message poll s once --consumer-group g'
    await assert.rejects(here(`${poll} --output-file ${join(folder, 'none', 'file')}`), /cannot be written/)
    assert.match(await here(poll), /kept/)
    assert.equal(await here(poll), 'none')
  })

  it('write polled messages to a file that send takes back', async () => {
    await here('topic create s copied 1')
    const file = join(folder, 'messages.jsonl')
    await here(`message send s t 'a b' --partition 0`)
    await here(`message poll s t 0 --first -m 100 --output-file ${file}`)
    await here(`message send s copied --input-file ${file}`)
    assert.match(await here('message poll s copied 0 --first -m 100 --raw'), /a b/)
    await writeFile(file, 'no message\n')
    await assert.rejects(here(`message send s copied --input-file ${file}`), /line 1: expected a message/)
    await assert.rejects(here('message send s copied --input-file /none.jsonl'), /\/none\.jsonl cannot be read/)
  })

  it('say how much of a file was sent before the line that cannot be', async () => {
    await here('topic create s half 1')
    const file = join(folder, 'half.jsonl')
    await writeFile(file, `${'{"payload":"YQ=="}\n'.repeat(1001)}{"payload":5}\n`)
    await assert.rejects(here(`message send s half --input-file ${file}`), {
      code: 'EDGE_READING_INVALID',
      message: /^after 1000 messages sent: line 1002: /,
    })
    assert.equal((await json('topic get s half')).messages, 1000)
  })

  it('show the members of a group and who has which partition', async () => {
    const { connect } = await import('../../../src/sdk/index.ts')
    await here('group create s t readers')
    await using member = await connect(`iggy://iggy:iggy@${edge.tcp}`)
    await member.groups.join('s', 't', 'readers')
    const group = await json('group get s t readers')
    assert.equal((group.members as unknown[]).length, 1)
    assert.match(await here('group get s t readers'), /MEMBER +PARTITIONS\n *\d+ +0, 1/)
  })

  it('store, show and forget offsets', async () => {
    await here('offset set reader s t 1 1')
    assert.equal((await json('offset get reader s t 1')).stored_offset, 1)
    await here('offset delete reader s t 1')
    assert.match(await here('offset get reader s t 1'), /no offset/)
    await assert.rejects(here('offset get reader s nope 1'), { code: 'EDGE_TOPIC_NOT_FOUND' })
  })

  it('find the binary port of an edge that is named by its HTTP address', async () => {
    assert.match(await runHere(['ping'], { ...user, IGGY_URL: `http://${edge.http}` }), /MILLISECONDS/)
  })

  it('say how the edge is', async () => {
    assert.equal(await here('status --quiet'), '')
    const text = await here('status')
    assert.match(text, /: ready\n/)
    assert.match(text, new RegExp(`tcp +${edge.tcp}`))
    assert.match(text, /s +t +durable +2/)
    assert.equal((JSON.parse(await here('status --json')) as { version: string }).version, '0.1.0')
  })

  it('say what the server is: ping, stats, clients, cluster, options, snapshot', async () => {
    assert.match(await here('ping -c 2'), / 2 /)
    assert.equal((await json('stats')).streams, 1)
    assert.match(await here('client list'), /tcp/)
    assert.match(await here('cluster metadata'), /leader/)
    assert.match(await here('options topic'), /durability/)
    assert.match(await here(`snapshot --out-dir ${folder}`), /snapshot_.*\.zip written/)
  })
})

describe('commands as processes', () => {
  const run = (line: string, environment: Record<string, string> = {}, input: string | null = null) =>
    runCommand(wordsOf(line), { ...user, IGGY_URL: edge.tcp, ...environment }, input)

  for (const [line, code, stderr] of [
    ['topic paint', 64, /unknown command "topic paint"/],
    ['topic create s', 64, /NAME is missing: iggy-edge topic create STREAM NAME/],
    ['topic create s t --colour red', 64, /unknown option --colour/],
    ['dump', 64, /--output is missing: iggy-edge dump --output VALUE \[OPTIONS\]; --help tells more/],
    ['message send nope nope x', 1, /20 \(resource_not_found\); .*iggy-edge topic list STREAM/],
    ['stream list --output yaml', 64, /output: found "yaml", expected table, list, json/],
    ['stream get nope', 1, /stream "nope" was not found; iggy-edge stream list/],
    ['stream create s', 1, /choose another name/],
    ['message poll s t --first --offset 3', 64, /--offset and --first exclude each other/],
    ['init /', 64, /path: \/ is a folder, expected a file to write, such as \/edge\.toml/],
    ['ping --url 127.0.0.1:1', 69, /127\.0\.0\.1:1.*is the server running there\?/],
    ['stream list -p wrong -u iggy', 1, /check user and password/],
    ['status --http-url http://127.0.0.1:1', 69, /cannot be reached over HTTP/],
    ['check --config /none.toml', 78, /\/none\.toml cannot be read/],
    ['demo --once --data /', 64, /data: found "\/", expected a folder that is empty or not there yet/],
  ] as const) {
    it(`iggy-edge ${line} ends with ${code} and one line`, async () => {
      const ran = await run(line)
      assert.equal(ran.code, code)
      assert.match(ran.stderr, stderr)
      assert.equal(ran.stdout, '')
    })
  }

  it('without a user, say how to name one', async () => {
    const { code, stderr } = await runCommand(['stream', 'list'], { IGGY_URL: edge.tcp })
    assert.equal(code, 1)
    assert.match(stderr, /no credentials were given; give --username and --password/)
    assert.equal(stderr.trim().split('\n').length, 1)
  })

  it('send each line of standard input', async () => {
    await here('topic create s lines 1')
    assert.equal((await run('message send s lines', {}, 'first\nsecond\n')).code, 0)
    assert.equal(await here('message poll s lines 0 --first -m 5 --raw'), 'first\nsecond')
    assert.equal((await run('message send s lines')).code, 64)
  })

  it('send a line that comes through a pipe without waiting for more, and what was read when they are interrupted', async () => {
    await here('topic create s piped 1')
    const child = spawn(EDGE_COMMAND.program, [...EDGE_COMMAND.before, ...wordsOf('message send s piped')], {
      env: { ...process.env, ...user, IGGY_URL: edge.tcp },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    child.stdin.write('first\n')
    using tail = startCommand(wordsOf('message tail s piped -m 1'), { ...user, IGGY_URL: edge.tcp })
    await tail.sees(/0:0 {2}first/)
    child.kill('SIGINT')
    const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
    assert.deepEqual([code, stderr], [1, 'iggy-edge: after 1 message sent: interrupted\n'])
  })

  it('print all of it into a pipe that is read late, and end when nobody reads any more', async () => {
    await here('topic create s long 1')
    const line = 'x'.repeat(500)
    assert.equal((await run('message send s long', {}, `${line}\n`.repeat(2000))).code, 0)
    using poll = startCommand(wordsOf('message poll s long 0 --first -m 2000 --raw'), { ...user, IGGY_URL: edge.tcp })
    assert.equal((await poll.done).stdout.length, 2000 * (line.length + 1))
    const child = spawn(EDGE_COMMAND.program, [...EDGE_COMMAND.before, ...wordsOf('message tail s long -n 2000')], {
      env: { ...process.env, ...user, IGGY_URL: edge.tcp },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const [stderr, [code]] = await Promise.all([
      text(child.stderr),
      once(child, 'exit'),
      once(child.stdout, 'data').then(() => child.stdout.destroy()),
    ])
    assert.deepEqual([code, stderr], [0, ''])
  })

  it('raw payloads come out as the bytes that they are', async () => {
    await here('topic create s bytes 1')
    const payload = Buffer.from([0xa1, 0x00, 0xff, 0xfe, 0x0a, 0x80])
    await writeFile(join(folder, 'bytes.jsonl'), `{"payload":"${payload.toString('base64')}"}\n`)
    await here(`message send s bytes --input-file ${join(folder, 'bytes.jsonl')}`)
    for (const line of ['message poll s bytes 0 --first --raw', 'message tail s bytes -m 1 --raw']) {
      const child = spawn(EDGE_COMMAND.program, [...EDGE_COMMAND.before, ...wordsOf(line)], {
        env: { ...process.env, ...user, IGGY_URL: edge.tcp },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      assert.deepEqual(await buffer(child.stdout), Buffer.concat([payload, Buffer.from('\n')]))
    }
  })

  it('tail shows what was there, then what comes, until it is interrupted', async () => {
    await here('topic create s live 2')
    await here('message send s live old --partition 0')
    using tail = startCommand(wordsOf('message tail s live'), { ...user, IGGY_URL: edge.tcp })
    await tail.sees(/0:0 {2}old/)
    await here(`message send s live '{"temperature":21.5}' --partition 1`)
    await tail.sees(/1:0 {2}\{"temperature":21\.5\}/)
    tail.interrupt()
    assert.equal((await tail.done).code, 0)
  })

  it('self-test tells in its lines that there is no folder to work in', async () => {
    const { code, stdout, stderr } = await run('self-test', { TMPDIR: join(folder, 'none') })
    assert.deepEqual([code, stderr], [1, ''])
    assert.match(stdout, /^FAILED {2}sqlite write and read: ENOENT: .*none\/iggy-edge-self-test-/)
  })

  it('init writes a file that check takes, and does not replace it unasked', async () => {
    const file = join(folder, 'made', 'edge.toml')
    assert.equal((await run(`init ${file}`)).code, 0)
    assert.match(await readFile(file, 'utf8'), /\[tcp\]/)
    assert.equal((await stat(file)).mode & 0o777, 0o600)
    const checked = await run(`check --config ${file}`)
    assert.equal(checked.code, 0, checked.stderr)
    assert.equal(checked.stdout.split('\n')[0], `configuration: sound (${file})`)
    const again = await run(`init ${file}`)
    assert.equal(again.code, 78)
    assert.match(again.stderr, /--force replaces it/)
    assert.equal((await run(`init ${file} --force`)).code, 0)
  })

  it('check and run tell secrets in a file that everybody may read', async () => {
    const file = join(folder, 'open.toml')
    const upstream = '[[sync.upstreams]]\nname = "central"\nurl = "iggy+tcp://user:hidden-word@127.0.0.1:1"\n'
    await writeFile(file, upstream, { mode: 0o644 })
    const checked = await run(`check --config-only --config ${file}`)
    assert.equal(checked.code, 0, checked.stderr)
    assert.match(
      checked.stderr,
      /^everybody .* can read .*open\.toml, which holds sync\.upstreams\[0\]\.url: chmod 600 /,
    )
    using edge = startCommand(['run', '--config', file, '--data', join(folder, 'open')], LOOPBACK_ENVIRONMENT)
    await edge.sees(/edge\.secrets\.readable_by_all.*"keys":"sync\.upstreams\[0\]\.url"/)
    await edge.sees(/edge\.ready.*\n/)
    edge.interrupt()
    assert.doesNotMatch((await edge.done).stderr, /hidden-word/)
  })

  it('init that fails names what failed and leaves the file as it was', async () => {
    const file = join(folder, 'kept.toml')
    const data = join(folder, 'no-folder')
    await writeFile(data, 'a file')
    const inTheWay = await run(`init ${file} --data ${data}`)
    assert.equal(inTheWay.code, 1)
    assert.match(inTheWay.stderr, /^iggy-edge: data folder .*no-folder cannot be made: EEXIST\n$/)
    await assert.rejects(readFile(file), { code: 'ENOENT' })
    await writeFile(file, 'as it was')
    await mkdir(`${file}.partial`)
    assert.equal((await run(`init ${file} --force`)).code, 1)
    assert.equal(await readFile(file, 'utf8'), 'as it was')
    assert.equal((await runCommand(['init', file, '--data', ''])).code, 64)
  })

  it('check tells unreadable keys and certificates that cannot be used together', async () => {
    const file = join(folder, 'both.toml')
    await writeFile(file, '[tcp]\naddres = "x"\n[http.tls]\nenabled = true\ncert_file = "/none"\nkey_file = "/none"\n')
    const { code, stderr } = await run(`check --config ${file}`)
    assert.equal(code, 78)
    assert.match(
      stderr,
      /3 problems\n.*tcp\.addres .*\n.*http\.tls\.cert_file: "\/none".*\n.*http\.tls\.key_file: "\/none"/,
    )
  })

  it('words after --version are told', async () => {
    assert.equal((await run('--version')).code, 0)
    assert.equal((await run('--version x')).code, 64)
  })

  it('check names all problems of a configuration at once', async () => {
    const file = join(folder, 'bad.toml')
    await writeFile(file, '[tcp]\naddres = "x"\n[http]\naddress = "nowhere"\n')
    const { code, stderr } = await run(`check --config ${file}`)
    assert.equal(code, 78)
    assert.match(stderr, /2 problems/)
    assert.match(stderr, /tcp\.addres .*did you mean tcp\.address/)
    assert.match(stderr, /http\.address .*found "nowhere"/)
  })
})
