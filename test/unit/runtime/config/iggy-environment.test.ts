import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readIggyEnvironment } from '../../../../src/runtime/config/iggy-environment.ts'
import { loadConfig } from '../../../../src/runtime/config/load.ts'
import { findExposedListeners } from '../../../../src/runtime/exposure.ts'

/** Without the reasons. */
function taken(environment: Record<string, string>, isFile?: (path: string) => boolean) {
  const { variables, ignored } = readIggyEnvironment(environment, isFile)
  return { variables, ignored }
}

/** One line each, as an operator reads them. */
function unreadable(environment: Record<string, string>): readonly string[] {
  return readIggyEnvironment(environment).unreadable.map(({ variable, problem }) => `${variable}: ${problem}`)
}

describe("the environment of Apache's server", () => {
  it('sets what exists here, in our words', () => {
    const { variables, ignored } = readIggyEnvironment({
      IGGY_SYSTEM_PATH: '/data',
      IGGY_TCP_ADDRESS: '127.0.0.1:1',
      IGGY_HTTP_CORS_ENABLED: 'false',
      IGGY_HTTP_CORS_ALLOWED_ORIGINS: '["https://a.org", "https://b.org"]',
      IGGY_HTTP_MAX_REQUEST_SIZE: '1.5 MB',
      IGGY_HEARTBEAT_INTERVAL: '1m 30s',
      IGGY_SYSTEM_LOGGING_LEVEL: 'trace',
      IGGY_TCP_TLS_CERT_FILE: '/etc/cert.pem',
      IGGY_TCP_TLS_SELF_SIGNED: 'true',
      IGGY_WEBSOCKET_TLS_ENABLED: 'True',
      IGGY_WEBSOCKET_TLS_CERT_FILE: '/etc/cert.pem',
      IGGY_WEBSOCKET_TLS_KEY_FILE: '/etc/key.pem',
      IGGY_SYSTEM_ENCRYPTION_ENABLED: 'true',
      IGGY_SYSTEM_ENCRYPTION_KEY: 'c2VjcmV0',
    })
    assert.deepEqual(ignored, [])
    const config = loadConfig({ file: null, environment: variables })
    assert.equal(config.system.path, '/data')
    assert.equal(config.tcp.address, '127.0.0.1:1')
    assert.equal(config['http.cors'].enabled, false)
    assert.deepEqual(config['http.cors'].allowed_origins, ['https://a.org', 'https://b.org'])
    assert.equal(config.http.max_request_size, 1_500_000)
    assert.equal(config.heartbeat.interval, 90_000)
    assert.equal(config.logging.level, 'debug')
    assert.equal(config.tcp.tls_cert_file, '/etc/cert.pem')
    assert.equal(config.tcp.tls_self_signed, true)
    assert.equal(config.websocket.tls_enabled, true)
    assert.equal(config.websocket.tls_key_file, '/etc/key.pem')
    assert.deepEqual([config['log.encryption'].enabled, config['log.encryption'].key], [true, 'c2VjcmV0'])
  })

  it('sets how often retention looks as a cron expression, and knows what is so here anyway', () => {
    const { variables, ignored } = readIggyEnvironment({
      IGGY_DATA_MAINTENANCE_MESSAGES_CLEANER_ENABLED: 'true',
      IGGY_DATA_MAINTENANCE_MESSAGES_INTERVAL: '90 s',
      IGGY_SYSTEM_PARTITION_ENFORCE_FSYNC: 'true',
      IGGY_SYSTEM_SEGMENT_SIZE: '10KiB',
    })
    assert.deepEqual(ignored, [])
    const config = loadConfig({ file: null, environment: variables })
    assert.equal(config.retention.schedule, '* * * * *')
    assert.equal(config.log.default_durability, 'durable')
    assert.equal(config.log.segment_size, 10_240)
    const off = {
      IGGY_DATA_MAINTENANCE_MESSAGES_CLEANER_ENABLED: 'false',
      IGGY_SYSTEM_PARTITION_ENFORCE_FSYNC: 'false',
    }
    assert.deepEqual(taken(off), { variables: {}, ignored: Object.keys(off) })
  })

  it("keeps log files where Apache's server has them, for whoever says how", () => {
    const { variables, ignored } = readIggyEnvironment({
      IGGY_SYSTEM_LOGGING_MAX_FILE_SIZE: '500 MB',
      IGGY_SYSTEM_LOGGING_MAX_TOTAL_SIZE: '0',
      IGGY_SYSTEM_LOGGING_RETENTION: '7 days',
      IGGY_SYSTEM_LOGGING_ROTATION_CHECK_INTERVAL: '1 h',
    })
    assert.deepEqual(ignored, ['IGGY_SYSTEM_LOGGING_ROTATION_CHECK_INTERVAL'], 'each line looks')
    const { logging } = loadConfig({ file: null, environment: variables })
    assert.deepEqual(logging, {
      level: 'info',
      file: 'logs/iggy-server.log',
      max_file_size: 500_000_000,
      max_total_size: 0,
      retention: 7 * 86_400_000,
    })
    const elsewhere = { IGGY_SYSTEM_LOGGING_PATH: '/var/log/iggy', IGGY_SYSTEM_LOGGING_FILE_ENABLED: 'true' }
    assert.deepEqual(taken(elsewhere), {
      variables: { EDGE_LOGGING__FILE: '/var/log/iggy/iggy-server.log' },
      ignored: [],
    })
    const off = { ...elsewhere, IGGY_SYSTEM_LOGGING_FILE_ENABLED: 'false' }
    assert.deepEqual(taken(off), { variables: {}, ignored: [] })
  })

  it('takes no file for what asks for none in other letters', () => {
    const place = { IGGY_SYSTEM_LOGGING_PATH: '/var/log/iggy' }
    for (const off of ['FALSE', '0', ' false '])
      assert.deepEqual(taken({ ...place, IGGY_SYSTEM_LOGGING_FILE_ENABLED: off }).variables, {}, off)
    const { variables } = readIggyEnvironment({ IGGY_SYSTEM_LOGGING_FILE_ENABLED: 'True' })
    assert.equal(variables.EDGE_LOGGING__FILE, 'logs/iggy-server.log')
  })

  it('looks as often as it does anyway where the interval says never or nothing, and names it', () => {
    for (const interval of ['none', 'unlimited', '0', '0 s']) {
      const environment = { IGGY_DATA_MAINTENANCE_MESSAGES_INTERVAL: interval }
      assert.deepEqual(taken(environment), { variables: {}, ignored: Object.keys(environment) }, interval)
    }
  })

  it('names a key of a list that is none, also one that every object has', () => {
    const environment = { IGGY_HTTP_JWT_TRUSTED_ISSUERS_0_CONSTRUCTOR: 'x' }
    assert.deepEqual(taken(environment), { variables: {}, ignored: Object.keys(environment) })
  })

  it('names what has no effect, and what does not fit with the reason, and starts all the same', () => {
    const { variables, ignored, unfit } = readIggyEnvironment({
      IGGY_SYSTEM_MEMORY_POOL_SIZE: '4 GiB',
      IGGY_QUIC_INITIAL_MTU: '8 KB',
      IGGY_HEARTBEAT_INTERVAL: '5 ms',
      IGGY_TCP_ADRESS: '127.0.0.1:1',
    })
    assert.deepEqual(variables, {})
    assert.deepEqual(ignored, [
      'IGGY_HEARTBEAT_INTERVAL',
      'IGGY_QUIC_INITIAL_MTU',
      'IGGY_SYSTEM_MEMORY_POOL_SIZE',
      'IGGY_TCP_ADRESS',
    ])
    assert.deepEqual(unfit, [
      {
        variable: 'IGGY_HEARTBEAT_INTERVAL',
        path: 'heartbeat.interval',
        problem: 'found "5 ms", expected a duration with its unit, such as "200 ms" or "30 s", from "1 s" to "1 h"',
      },
    ])
  })

  it('refuses what nobody can read: encryption that is not on because of a "yes" would be found out too late', () => {
    for (const [variable, text, expected] of [
      ['IGGY_SYSTEM_ENCRYPTION_ENABLED', 'yes', 'true or false'],
      ['IGGY_SYSTEM_LOGGING_FILE_ENABLED', 'no', 'true or false'],
      ['IGGY_HEARTBEAT_INTERVAL', 'often', 'a duration with its unit, such as "200 ms" or "30 s", from "1 s" to "1 h"'],
      ['IGGY_HEARTBEAT_INTERVAL', '60', 'a duration with its unit, such as "200 ms" or "30 s", from "1 s" to "1 h"'],
      ['IGGY_DATA_MAINTENANCE_MESSAGES_INTERVAL', 'often', 'an interval such as "1 m"'],
      ['IGGY_HTTP_MAX_REQUEST_SIZE', '2 XB', 'a size such as "8 MiB", from "1 KiB" to "64 MiB"'],
      ['IGGY_PERSONAL_ACCESS_TOKEN_MAX_TOKENS_PER_USER', '-1', 'a whole number, from 1 to 100000'],
      ['IGGY_HTTP_JWT_TRUSTED_ISSUERS_0_USER_ID', 'root', 'a whole number, from 0 to 4294967295'],
      ['IGGY_TCP_ADDRESS', 'localhost', 'host:port such as "127.0.0.1:8090" or "[::]:8090"'],
    ] as const)
      assert.deepEqual(unreadable({ [variable]: text }), [`${variable}: found "${text}", expected ${expected}`])
  })

  it('starts with what Apache reads, though it is beyond what there is here', () => {
    for (const [variable, text] of [
      ['IGGY_HTTP_MAX_REQUEST_SIZE', '10 GB'],
      ['IGGY_HEARTBEAT_INTERVAL', 'none'],
      ['IGGY_HEARTBEAT_INTERVAL', 'server_default'],
      ['IGGY_HTTP_JWT_ACCESS_TOKEN_EXPIRY', 'unlimited'],
      ['IGGY_PERSONAL_ACCESS_TOKEN_MAX_TOKENS_PER_USER', '4294967295'],
      ['IGGY_SYSTEM_LOGGING_LEVEL', 'warn,server=debug'],
    ] as const) {
      assert.deepEqual(unreadable({ [variable]: text }), [])
      assert.deepEqual(taken({ [variable]: text }), { variables: {}, ignored: [variable] })
    }
  })

  it('stands in for a server whose listeners somebody placed: ports are shared, and none is opened that nobody named', () => {
    const { variables, ignored } = readIggyEnvironment({
      IGGY_TCP_ADDRESS: '127.0.0.1:18090',
      IGGY_QUIC_ADDRESS: '127.0.0.1:18080',
    })
    assert.equal(variables.EDGE_SYSTEM__REUSE_PORT, 'true')
    assert.equal(variables.EDGE_WEBTRANSPORT__ENABLED, 'false')
    assert.equal(variables.EDGE_QUIC__ADDRESS, '127.0.0.1:18080')
    assert.deepEqual(ignored, [])
    assert.equal(readIggyEnvironment({ IGGY_SYSTEM_PATH: 'data' }).variables.EDGE_SYSTEM__REUSE_PORT, undefined)
    for (const nowhere of ['', 'localhost'])
      assert.deepEqual(taken({ IGGY_TCP_ADDRESS: nowhere }).variables, {}, 'an address that is none')
  })

  it('takes only TLS on a TCP port where it is turned on, as there, so that it may be reached from other machines', () => {
    const files = { IGGY_TCP_TLS_CERT_FILE: '/etc/cert.pem', IGGY_TCP_TLS_KEY_FILE: '/etc/key.pem' }
    const only = { IGGY_HTTP_ENABLED: 'false', IGGY_WEBSOCKET_ENABLED: 'false', IGGY_TCP_ADDRESS: '0.0.0.0:8090' }
    for (const on of ['true', 'True', '1']) {
      const { variables, ignored } = readIggyEnvironment({ ...only, ...files, IGGY_TCP_TLS_ENABLED: on })
      assert.deepEqual(ignored, [])
      const config = loadConfig({ file: null, environment: variables })
      assert.deepEqual([config.tcp.tls_enabled, config.tcp.tls_required], [true, true], on)
      assert.deepEqual(findExposedListeners(config), [])
    }
    const off = readIggyEnvironment({ ...files, IGGY_TCP_TLS_ENABLED: 'false' })
    assert.equal(off.variables.EDGE_TCP__TLS_REQUIRED, undefined)
  })

  it('turns plain QUIC on where it is asked for or placed, as there, and leaves it off otherwise', () => {
    const enabled = (environment: Record<string, string>) =>
      readIggyEnvironment(environment).variables.EDGE_QUIC__ENABLED
    assert.equal(enabled({ IGGY_TCP_ADDRESS: '127.0.0.1:18090' }), undefined)
    assert.equal(enabled({ IGGY_QUIC_ENABLED: 'true' }), 'true')
    assert.equal(enabled({ IGGY_QUIC_ADDRESS: '127.0.0.1:18080' }), 'true')
    assert.equal(enabled({ IGGY_QUIC_ADDRESS: '127.0.0.1:18080', IGGY_QUIC_ENABLED: 'false' }), 'false')
  })

  it('takes what means the same of plain QUIC: times, streams, and its own certificate before files', () => {
    const files = { IGGY_QUIC_CERTIFICATE_CERT_FILE: 'a.pem', IGGY_QUIC_CERTIFICATE_KEY_FILE: 'b.pem' }
    const { variables, ignored } = readIggyEnvironment({
      ...files,
      IGGY_QUIC_MAX_IDLE_TIMEOUT: '10 s',
      IGGY_QUIC_KEEP_ALIVE_INTERVAL: '5 s',
      IGGY_QUIC_MAX_CONCURRENT_BIDI_STREAMS: '10000',
      IGGY_QUIC_RECEIVE_WINDOW: '100 KB',
    })
    assert.deepEqual(variables, {
      EDGE_QUIC__TLS_CERT_FILE: 'a.pem',
      EDGE_QUIC__TLS_KEY_FILE: 'b.pem',
      EDGE_QUIC__MAX_IDLE_TIMEOUT: '10000 ms',
      EDGE_QUIC__KEEP_ALIVE_INTERVAL: '5000 ms',
      EDGE_QUIC__MAX_CONCURRENT_BIDI_STREAMS: '10000',
      EDGE_QUIC__RECEIVE_WINDOW: '100000',
    })
    assert.deepEqual(ignored, [])
    const own = readIggyEnvironment({ ...files, IGGY_QUIC_CERTIFICATE_SELF_SIGNED: 'true' })
    assert.deepEqual(own.variables, { EDGE_QUIC__TLS_SELF_SIGNED: 'true' })
  })

  it('makes a certificate where the file of one is missing, as there, and names the files', () => {
    const files = { IGGY_TCP_TLS_CERT_FILE: 'certs/cert.pem', IGGY_TCP_TLS_KEY_FILE: 'certs/key.pem' }
    const own = { EDGE_TCP__TLS_ENABLED: 'true', EDGE_TCP__TLS_REQUIRED: 'true', EDGE_TCP__TLS_SELF_SIGNED: 'true' }
    const nowhere = () => false
    const asked = { ...files, IGGY_TCP_TLS_ENABLED: 'true', IGGY_TCP_TLS_SELF_SIGNED: 'true' }
    assert.deepEqual(taken(asked, nowhere), { variables: own, ignored: Object.keys(files) })
    // It is what that server does unless it is told not to.
    assert.deepEqual(taken({ IGGY_TCP_TLS_ENABLED: 'True' }), { variables: own, ignored: [] })
    const quic = { IGGY_QUIC_CERTIFICATE_CERT_FILE: 'cert.pem', IGGY_WEBSOCKET_TLS_ENABLED: 'true' }
    assert.deepEqual(taken(quic, nowhere), {
      variables: {
        EDGE_QUIC__TLS_SELF_SIGNED: 'true',
        EDGE_WEBSOCKET__TLS_ENABLED: 'true',
        EDGE_WEBSOCKET__TLS_SELF_SIGNED: 'true',
      },
      ignored: ['IGGY_QUIC_CERTIFICATE_CERT_FILE'],
    })
  })

  it('takes the files of a certificate that are there, or that must be', () => {
    const files = { IGGY_WEBSOCKET_TLS_CERT_FILE: 'cert.pem', IGGY_WEBSOCKET_TLS_KEY_FILE: 'key.pem' }
    const found = (environment: Record<string, string>, isFile: boolean) => {
      const { variables, ignored } = readIggyEnvironment({ ...files, ...environment }, () => isFile)
      return [variables.EDGE_WEBSOCKET__TLS_CERT_FILE, variables.EDGE_WEBSOCKET__TLS_KEY_FILE, ignored.length]
    }
    const kept = ['cert.pem', 'key.pem', 0]
    assert.deepEqual(found({ IGGY_WEBSOCKET_TLS_ENABLED: 'true', IGGY_WEBSOCKET_TLS_SELF_SIGNED: 'true' }, true), kept)
    assert.deepEqual(
      found({ IGGY_WEBSOCKET_TLS_ENABLED: 'true', IGGY_WEBSOCKET_TLS_SELF_SIGNED: 'False' }, false),
      kept,
    )
    assert.deepEqual(found({ IGGY_WEBSOCKET_TLS_ENABLED: 'false' }, false), kept, 'nobody will read them')
  })

  it('leaves variables of clients, of the root user and of others alone', () => {
    const { variables, ignored } = readIggyEnvironment({
      IGGY_URL: 'x',
      IGGY_USERNAME: 'x',
      IGGY_ROOT_USERNAME: 'x',
      IGGY_ROOT_PASSWORD: 'x',
      IGGY_CONFIG_PATH: 'x',
      IGGY_CONNECTORS_CONFIG_PATH: 'x',
      IGGY_MCP_TRANSPORT: 'x',
      PATH: 'x',
      IGGY_TCP_ENABLED: undefined,
      IGGY_SYSTEM_ENCRYPTION_KEY: '',
    })
    assert.deepEqual([variables, ignored], [{}, []])
  })
})
