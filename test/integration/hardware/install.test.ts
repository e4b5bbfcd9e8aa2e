import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadConfig } from '../../../src/runtime/config/load.ts'
import { ROOT } from '../../support/source-tree.ts'

const script = join(ROOT, 'hardware/install.sh')
const hasCommand = (name: string): boolean => spawnSync(name, ['--version']).error === undefined

test('files are staged for an image, and an existing configuration is kept', (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'install-'))
  context.after(() => rmSync(folder, { recursive: true }))
  const executable = join(folder, 'executable')
  writeFileSync(executable, 'first')
  writeFileSync(join(folder, 'THIRD-PARTY.txt'), 'licences of others')
  const root = join(folder, 'root')
  const install = (): string =>
    execFileSync(script, [executable], { encoding: 'utf8', env: { ...process.env, DESTDIR: root } })

  install()
  assert.equal(readFileSync(join(root, 'usr/local/bin/iggy-edge'), 'utf8'), 'first')
  assert.equal(statSync(join(root, 'usr/local/bin/iggy-edge')).mode & 0o777, 0o755)
  assert.ok(existsSync(join(root, 'etc/systemd/system/iggy-edge.service')))
  assert.equal(readFileSync(join(root, 'usr/share/doc/iggy-edge/THIRD-PARTY.txt'), 'utf8'), 'licences of others')
  const license = readFileSync(join(root, 'usr/share/doc/iggy-edge/LICENSE'), 'utf8')
  assert.equal(license, readFileSync(join(ROOT, 'LICENSE'), 'utf8'))
  const configuration = join(root, 'etc/iggy-edge/edge.toml')
  const installed = readFileSync(configuration, 'utf8')
  assert.equal(statSync(configuration).mode & 0o777, 0o600, 'passwords may be written into it')
  assert.equal(
    loadConfig({ file: { name: 'edge.toml', text: installed }, environment: {} }).system.path,
    '/var/lib/iggy-edge',
  )
  const shipped = readFileSync(join(ROOT, 'config/edge.toml'), 'utf8')
  assert.equal(installed.replace('path = "/var/lib/iggy-edge"', '# path = "local_data"'), shipped)

  writeFileSync(configuration, '# of the operator')
  chmodSync(configuration, 0o644)
  writeFileSync(executable, 'second')
  const updated = spawnSync(script, [executable], { encoding: 'utf8', env: { ...process.env, DESTDIR: root } })
  assert.match(updated.stdout, /kept .*edge\.toml/)
  assert.match(updated.stderr, /^install: everybody can read .*edge\.toml; .*: chmod 600 it\n$/)
  assert.equal(readFileSync(configuration, 'utf8'), '# of the operator')
  assert.equal(readFileSync(join(root, 'usr/local/bin/iggy-edge'), 'utf8'), 'second')
  assert.deepEqual(readdirSync(join(root, 'usr/local/bin')), ['iggy-edge'])
})

test('an installation without the licences of others is told, and goes on', (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'install-'))
  context.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'executable'), '')
  const env = { ...process.env, DESTDIR: join(folder, 'root') }
  const result = spawnSync(script, [join(folder, 'executable')], { encoding: 'utf8', env })
  assert.equal(result.status, 0)
  assert.match(result.stderr, /^install: .*THIRD-PARTY\.txt is missing: .*\n$/)
})

test('a missing executable is one line, and nothing is staged', (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'install-'))
  context.after(() => rmSync(folder, { recursive: true }))
  const env = { ...process.env, DESTDIR: join(folder, 'root') }
  const result = spawnSync(script, [join(folder, 'none')], { encoding: 'utf8', env })
  assert.equal(result.status, 1)
  assert.match(result.stderr, /^install: no executable at .*\n$/)
  assert.equal(existsSync(join(folder, 'root')), false)
})

test('an executable that fails its self-test replaces nothing', {
  skip: spawnSync('unshare', ['-rm', 'true']).status === 0 ? false : 'no namespaces here',
}, (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'install-'))
  context.after(() => rmSync(folder, { recursive: true }))
  const executable = join(folder, 'new')
  writeFileSync(executable, '#!/bin/sh\nexit 1\n')
  const installed = join(folder, 'bin')
  mkdirSync(installed)
  writeFileSync(join(installed, 'iggy-edge'), 'the one that works')
  // The place where it would be installed is, for this script alone, a folder of the test.
  const inPlace = 'mount --bind "$1" /usr/local/bin && exec "$2" "$3"'
  const result = spawnSync('unshare', ['-rm', 'sh', '-c', inPlace, 'sh', installed, script, executable], {
    encoding: 'utf8',
  })
  assert.equal(result.status, 1)
  assert.match(result.stderr, /^install: the self-test of .*new failed: nothing was changed\n$/)
  assert.deepEqual(readdirSync(installed), ['iggy-edge'])
  assert.equal(readFileSync(join(installed, 'iggy-edge'), 'utf8'), 'the one that works')
})

test('the unit waits for no network and is never given up', () => {
  const unit = readFileSync(join(ROOT, 'hardware/iggy-edge.service'), 'utf8')
  const settings = unit.split('\n').filter((line) => !line.startsWith('#'))
  assert.deepEqual(
    settings.filter((line) => line.includes('network-online')),
    [],
  )
  assert.ok(settings.includes('StartLimitIntervalSec=0'))
  assert.ok(settings.includes('Restart=always'))
})

test('the unit hands the service the configuration that only root may read, where the service looks for it', () => {
  const unit = readFileSync(join(ROOT, 'hardware/iggy-edge.service'), 'utf8')
  const [, name = '', file] = /^LoadCredential=([^:]+):(.+)$/m.exec(unit) ?? []
  assert.equal(file, '/etc/iggy-edge/edge.toml')
  assert.match(
    unit,
    new RegExp(`^ExecStart=.* --config \\$\\{CREDENTIALS_DIRECTORY\\}/${name.replace('.', '\\.')}$`, 'm'),
  )
})

test('the unit holds nothing that systemd does not know', {
  skip: hasCommand('systemd-analyze') ? false : 'systemd is not installed',
}, (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'unit-'))
  context.after(() => rmSync(folder, { recursive: true }))
  // The executable is not installed here, which `verify` would report.
  const unit = readFileSync(join(ROOT, 'hardware/iggy-edge.service'), 'utf8')
  writeFileSync(join(folder, 'iggy-edge.service'), unit.replace(/^ExecStart=.*/m, 'ExecStart=/bin/true'))
  const result = spawnSync('systemd-analyze', ['verify', join(folder, 'iggy-edge.service')], { encoding: 'utf8' })
  const complaints = result.stderr.split('\n').filter((line) => line.includes('iggy-edge'))
  assert.deepEqual(complaints, [])
})

test('the installer passes shellcheck', {
  skip: hasCommand('shellcheck') ? false : 'shellcheck is not installed',
}, () => {
  const result = spawnSync('shellcheck', [script, join(ROOT, '.ci/run')], { encoding: 'utf8' })
  assert.equal(result.status, 0, result.stdout)
})
