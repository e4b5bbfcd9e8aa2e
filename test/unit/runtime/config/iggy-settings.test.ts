/**
 * Every setting of Apache's servers 0.8.0 and 0.9.0-edge.5, by its variable: what it sets here, or that it is named as
 * without effect. A setting of a newer server that stands in neither list is named as well.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readIggyEnvironment } from '../../../../src/runtime/config/iggy-environment.ts'
import { loadConfig } from '../../../../src/runtime/config/load.ts'

/** A value as people write it there, the key here, and what it is then. */
const UNDERSTOOD: Readonly<Record<string, readonly [text: string, path: string, value: unknown]>> = {
  IGGY_CONSUMER_GROUP_REBALANCING_TIMEOUT: ['30s', 'consumer_group.rebalancing_timeout', 30_000],
  IGGY_DATA_MAINTENANCE_MESSAGES_INTERVAL: ['1 m', 'retention.schedule', '* * * * *'],
  IGGY_HEARTBEAT_ENABLED: ['false', 'heartbeat.enabled', false],
  IGGY_HEARTBEAT_INTERVAL: ['1 m 30 s', 'heartbeat.interval', 90_000],
  IGGY_HTTP_ADDRESS: ['127.0.0.1:3000', 'http.address', '127.0.0.1:3000'],
  IGGY_HTTP_CORS_ALLOWED_HEADERS: ['["content-type"]', 'http.cors.allowed_headers', ['content-type']],
  IGGY_HTTP_CORS_ALLOWED_METHODS: ['["GET", "PUT"]', 'http.cors.allowed_methods', ['GET', 'PUT']],
  IGGY_HTTP_CORS_ALLOWED_ORIGINS: ['["http://a.org"]', 'http.cors.allowed_origins', ['http://a.org']],
  IGGY_HTTP_CORS_ALLOW_CREDENTIALS: ['true', 'http.cors.allow_credentials', true],
  IGGY_HTTP_CORS_ALLOW_PRIVATE_NETWORK: ['true', 'http.cors.allow_private_network', true],
  IGGY_HTTP_CORS_ENABLED: ['false', 'http.cors.enabled', false],
  IGGY_HTTP_CORS_EXPOSED_HEADERS: ['[""]', 'http.cors.exposed_headers', []],
  IGGY_HTTP_ENABLED: ['False', 'http.enabled', false],
  IGGY_HTTP_JWT_ACCESS_TOKEN_EXPIRY: ['1 h', 'http.jwt.access_token_expiry', 3_600_000],
  IGGY_HTTP_JWT_AUDIENCE: ['us', 'http.jwt.audience', 'us'],
  IGGY_HTTP_JWT_CLOCK_SKEW: ['0', 'http.jwt.clock_skew', 0],
  IGGY_HTTP_JWT_ENCODING_SECRET: ['hush', 'http.jwt.secret', 'hush'],
  IGGY_HTTP_JWT_ISSUER: ['us', 'http.jwt.issuer', 'us'],
  IGGY_HTTP_MAX_REQUEST_SIZE: ['1.5 MB', 'http.max_request_size', 1_500_000],
  IGGY_HTTP_METRICS_ENABLED: ['false', 'http.metrics.enabled', false],
  IGGY_HTTP_METRICS_ENDPOINT: ['/m', 'http.metrics.endpoint', '/m'],
  IGGY_HTTP_TLS_CERT_FILE: ['c.pem', 'http.tls.cert_file', 'c.pem'],
  IGGY_HTTP_TLS_ENABLED: ['true', 'http.tls.enabled', true],
  IGGY_HTTP_TLS_KEY_FILE: ['k.pem', 'http.tls.key_file', 'k.pem'],
  IGGY_PERSONAL_ACCESS_TOKEN_CLEANER_INTERVAL: ['1 m', 'personal_access_token.cleaner_interval', 60_000],
  IGGY_PERSONAL_ACCESS_TOKEN_MAX_TOKENS_PER_USER: ['7', 'personal_access_token.max_tokens_per_user', 7],
  IGGY_QUIC_ADDRESS: ['127.0.0.1:8080', 'quic.address', '127.0.0.1:8080'],
  IGGY_QUIC_CERTIFICATE_CERT_FILE: ['c.pem', 'quic.tls_cert_file', 'c.pem'],
  IGGY_QUIC_CERTIFICATE_KEY_FILE: ['k.pem', 'quic.tls_key_file', 'k.pem'],
  IGGY_QUIC_CERTIFICATE_SELF_SIGNED: ['true', 'quic.tls_self_signed', true],
  IGGY_QUIC_ENABLED: ['true', 'quic.enabled', true],
  IGGY_QUIC_KEEP_ALIVE_INTERVAL: ['5 s', 'quic.keep_alive_interval', 5000],
  IGGY_QUIC_MAX_CONCURRENT_BIDI_STREAMS: ['10000', 'quic.max_concurrent_bidi_streams', 10_000],
  IGGY_QUIC_MAX_IDLE_TIMEOUT: ['10 s', 'quic.max_idle_timeout', 10_000],
  IGGY_QUIC_RECEIVE_WINDOW: ['100 KB', 'quic.receive_window', 100_000],
  IGGY_SYSTEM_ENCRYPTION_ENABLED: ['true', 'log.encryption.enabled', true],
  IGGY_SYSTEM_ENCRYPTION_KEY: ['c2VjcmV0', 'log.encryption.key', 'c2VjcmV0'],
  IGGY_SYSTEM_LOGGING_FILE_ENABLED: ['true', 'logging.file', 'logs/iggy-server.log'],
  IGGY_SYSTEM_LOGGING_LEVEL: ['none', 'logging.level', 'error'],
  IGGY_SYSTEM_LOGGING_MAX_FILE_SIZE: ['500 MB', 'logging.max_file_size', 500_000_000],
  IGGY_SYSTEM_LOGGING_MAX_TOTAL_SIZE: ['4 GB', 'logging.max_total_size', 4_000_000_000],
  IGGY_SYSTEM_LOGGING_PATH: ['l', 'logging.file', 'l/iggy-server.log'],
  IGGY_SYSTEM_LOGGING_RETENTION: ['7 days', 'logging.retention', 604_800_000],
  IGGY_SYSTEM_MESSAGE_DEDUPLICATION_ENABLED: ['true', 'message_deduplication.enabled', true],
  IGGY_SYSTEM_MESSAGE_DEDUPLICATION_EXPIRY: ['1 m', 'message_deduplication.expiry', 60_000],
  IGGY_SYSTEM_MESSAGE_DEDUPLICATION_MAX_ENTRIES: ['10000', 'message_deduplication.max_entries', 10_000],
  IGGY_SYSTEM_PARTITION_ENFORCE_FSYNC: ['true', 'log.default_durability', 'durable'],
  IGGY_SYSTEM_PATH: ['data', 'system.path', 'data'],
  IGGY_SYSTEM_SEGMENT_SIZE: ['1 GiB', 'log.segment_size', 1024 ** 3],
  IGGY_TCP_ADDRESS: ['0.0.0.0:8090', 'tcp.address', '0.0.0.0:8090'],
  IGGY_TCP_ENABLED: ['false', 'tcp.enabled', false],
  IGGY_TCP_TLS_CERT_FILE: ['c.pem', 'tcp.tls_cert_file', 'c.pem'],
  IGGY_TCP_TLS_ENABLED: ['true', 'tcp.tls_enabled', true],
  IGGY_TCP_TLS_KEY_FILE: ['k.pem', 'tcp.tls_key_file', 'k.pem'],
  IGGY_TCP_TLS_SELF_SIGNED: ['true', 'tcp.tls_self_signed', true],
  IGGY_WEBSOCKET_ADDRESS: ['127.0.0.1:8092', 'websocket.address', '127.0.0.1:8092'],
  IGGY_WEBSOCKET_ENABLED: ['false', 'websocket.enabled', false],
  IGGY_WEBSOCKET_TLS_CERT_FILE: ['c.pem', 'websocket.tls_cert_file', 'c.pem'],
  IGGY_WEBSOCKET_TLS_ENABLED: ['true', 'websocket.tls_enabled', true],
  IGGY_WEBSOCKET_TLS_KEY_FILE: ['k.pem', 'websocket.tls_key_file', 'k.pem'],
  IGGY_WEBSOCKET_TLS_SELF_SIGNED: ['true', 'websocket.tls_self_signed', true],
}

/** By the part they share. */
const NAMED: Readonly<Record<string, string>> = {
  CLUSTER: 'ENABLED NAME HEARTBEAT_TIMEOUT AUTH_ENABLED AUTH_SHARED_SECRET TLS_ENABLED NODES_0_NAME NODE_CURRENT_IP',
  CONSUMER_GROUP: 'REBALANCING_CHECK_INTERVAL',
  HTTP: 'WEB_UI JWT_ALGORITHM JWT_DECODING_SECRET JWT_NOT_BEFORE JWT_USE_BASE64_SECRET JWT_VALID_AUDIENCES JWT_VALID_ISSUERS',
  MESSAGE_BUS: 'MAX_BATCH MAX_MESSAGE_SIZE PEER_QUEUE_CAPACITY RECONNECT_PERIOD CLOSE_GRACE HANDSHAKE_GRACE',
  MESSAGE_SAVER: 'ENABLED ENFORCE_FSYNC INTERVAL',
  METADATA: 'CLIENTS_TABLE_MAX JOURNAL_SLOTS PREPARE_QUEUE_DEPTH',
  PARTITION: 'EVICTED_RING_CAPACITY PREPARE_QUEUE_DEPTH TRANSFER_ARTIFACT_BYTES_MAX',
  QUIC: 'DATAGRAM_SEND_BUFFER_SIZE INITIAL_MTU SEND_WINDOW STREAM_RECEIVE_WINDOW SOCKET_OVERRIDE_DEFAULTS SOCKET_KEEPALIVE',
  SYSTEM:
    'BACKUP_PATH BACKUP_COMPATIBILITY_PATH RUNTIME_PATH STREAM_PATH TOPIC_PATH TOPIC_MAX_SIZE TOPIC_MESSAGE_EXPIRY',
  SYSTEM_COMPRESSION: 'ALLOW_OVERRIDE DEFAULT_ALGORITHM',
  SYSTEM_LOGGING: 'ROTATION_CHECK_INTERVAL SYSINFO_PRINT_INTERVAL',
  SYSTEM_MEMORY_POOL: 'ENABLED SIZE BUCKET_CAPACITY',
  SYSTEM_PARTITION: 'PATH MESSAGES_REQUIRED_TO_SAVE SIZE_OF_MESSAGES_REQUIRED_TO_SAVE VALIDATE_CHECKSUM',
  SYSTEM_RECOVERY: 'RECREATE_MISSING_STATE',
  SYSTEM_SEGMENT: 'ARCHIVE_EXPIRED CACHE_INDEXES',
  SYSTEM_SHARDING: 'CPU_ALLOCATION PIN_CORES INBOX_CAPACITY REPLY_INBOX_CAPACITY SHUTDOWN_DRAIN_TIMEOUT',
  SYSTEM_STATE: 'ENFORCE_FSYNC MAX_FILE_OPERATION_RETRIES RETRY_DELAY',
  TCP: 'IPV6 SOCKET_MIGRATION SOCKET_OVERRIDE_DEFAULTS SOCKET_RECV_BUFFER_SIZE SOCKET_KEEPALIVE SOCKET_NODELAY SOCKET_LINGER',
  TELEMETRY: 'ENABLED SERVICE_NAME LOGS_TRANSPORT LOGS_ENDPOINT TRACES_TRANSPORT TRACES_ENDPOINT',
  WEBSOCKET: 'READ_BUFFER_SIZE MAX_MESSAGE_SIZE MAX_FRAME_SIZE ACCEPT_UNMASKED_FRAMES',
}

test('what there is here too is set', () => {
  for (const [variable, [text, path, value]] of Object.entries(UNDERSTOOD)) {
    const { variables, ignored, unreadable } = readIggyEnvironment({ [variable]: text })
    assert.deepEqual([ignored, unreadable], [[], []], variable)
    const config = loadConfig({ file: null, environment: variables }) as unknown as Record<
      string,
      Record<string, unknown>
    >
    const dot = path.lastIndexOf('.')
    assert.deepEqual(config[path.slice(0, dot)]?.[path.slice(dot + 1)], value, variable)
  }
})

test('what there is not is named, all at once', () => {
  const names = Object.entries(NAMED).flatMap(([part, rest]) => rest.split(' ').map((each) => `IGGY_${part}_${each}`))
  const environment = Object.fromEntries(names.map((name) => [name, 'something']))
  assert.deepEqual(readIggyEnvironment(environment), {
    variables: {},
    ignored: names.sort(),
    unfit: [],
    unreadable: [],
  })
})

test('what asks for what is so here anyway is not named', () => {
  const environment = {
    IGGY_CLUSTER_ENABLED: 'false',
    IGGY_DATA_MAINTENANCE_MESSAGES_CLEANER_ENABLED: 'True',
    IGGY_HTTP_JWT_ALGORITHM: 'HS256',
    IGGY_HTTP_WEB_UI: 'false',
    IGGY_SYSTEM_SEGMENT_ARCHIVE_EXPIRED: 'false',
    IGGY_TELEMETRY_ENABLED: 'FALSE',
  }
  assert.deepEqual(readIggyEnvironment(environment), { variables: {}, ignored: [], unfit: [], unreadable: [] })
})
