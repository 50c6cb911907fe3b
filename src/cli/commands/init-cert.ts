import { X509Certificate } from 'node:crypto'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { systemClock } from '../../base/clock.ts'
import { errorText } from '../../base/errors.ts'
import { isCertifiable, writePair } from '../../config/certificates.ts'
import { createPair } from '../../config/self-sign.ts'
import { defineCommand } from '../command.ts'
import { CliError, EXIT, usageError } from '../exit.ts'
import { toYaml } from '../yaml.ts'

/** Contract: memory.md 11.2. */
export const initCert = defineCommand({
  flags: {
    host: { value: 'host', required: true, help: 'Name or address that clients connect to' },
    san: { value: 'host', repeat: true, help: 'Another name or address; may be given several times' },
    output: { value: 'dir', help: 'Where server.crt and server.key go (~/.mem/tls)' },
    rsa: { help: 'RSA 4096 instead of ECDSA P-256' },
  },
  notes:
    'Valid for a year, also for 127.0.0.1, ::1 and subdomains of the host. Files of the same names are replaced: to ' +
    'renew, run it again and send the server SIGHUP. Clients must be given server.crt to trust it. The format of the ' +
    'answer is -o here, as --output is the directory.',
  examples: ['init-cert --host memory.example.org', 'init-cert --host 10.0.0.5 --san memory.internal --output ./tls'],
  async run({ io, output }, { host, san, output: directory, rsa }) {
    const unfit = [host, ...san].find((name) => !isCertifiable(name))
    if (unfit !== undefined) throw usageError(`'${unfit}' is no DNS name and no IP address`)
    const pair = await createPair({ host, sans: san, rsa: rsa ?? false, now: systemClock.now() })
    const { certFile, keyFile } = write(resolve(directory ?? join(io.env['HOME'] ?? homedir(), '.mem/tls')), pair)
    const fingerprint = `SHA256:${new X509Certificate(pair.cert).fingerprint256}`
    const config = { server: { tls: { enabled: true, cert_file: certFile, key_file: keyFile } } }
    await output.text(
      { cert_file: certFile, key_file: keyFile, fingerprint, config },
      `certificate  ${certFile}\nprivate key  ${keyFile}\nfingerprint  ${fingerprint}\n\n${toYaml(config)}`,
    )
  },
})

function write(...args: Parameters<typeof writePair>): ReturnType<typeof writePair> {
  try {
    return writePair(...args)
  } catch (error) {
    throw new CliError(EXIT.failure, `cannot write to ${args[0]}: ${errorText(error)}`)
  }
}
