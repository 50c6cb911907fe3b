import { X509Certificate } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { isMap } from '../../base/json.ts'
import type { Console } from '../settings.ts'
import type { Page } from './page.ts'

const WARNED_MS = 30 * 24 * 3600 * 1000

/** What a person checks on a certificate. */
export interface CertificateFacts {
  subject: string
  issuer: string
  fingerprint: string
  from: string
  to: string
  daysLeft: number
  /** It ends within 30 days, or has ended. */
  isEnding: boolean
}

/** The configuration, whether the stores are up, and the certificate. */
export async function settingsPage({ service, settings, clock }: Console): Promise<Page> {
  const { configuration, certificate } = settings
  const data = {
    configuration: Object.entries(configuration).map(([name, values]) => ({ name, values: flatten(values) })),
    readiness: await service.health.readiness(),
    graph: service.graph.isAvailable,
    certificate: certificate === undefined ? undefined : certificateFacts(certificate, clock),
  }
  return { template: './settings', title: 'Settings', data }
}

/** A map in a section shows as `tls.enabled`; values as YAML would have them. */
function flatten(values: Readonly<Record<string, unknown>>, prefix = ''): [string, string][] {
  return Object.entries(values).flatMap(([key, value]): [string, string][] =>
    isMap(value) ? flatten(value, `${prefix}${key}.`) : [[prefix + key, textOf(value)]],
  )
}

const textOf = (value: unknown): string => (typeof value === 'string' && value !== '' ? value : JSON.stringify(value))

/** What a person asks of a certificate (PEM). @throws when it is none */
export function certificateFacts(pem: string, clock: Clock): CertificateFacts {
  const { subject, issuer, fingerprint256, validFrom, validTo } = new X509Certificate(pem)
  const left = Date.parse(validTo) - clock.now()
  return {
    subject,
    issuer,
    fingerprint: fingerprint256,
    from: new Date(validFrom).toISOString(),
    to: new Date(validTo).toISOString(),
    daysLeft: Math.floor(left / 86_400_000),
    isEnding: left < WARNED_MS,
  }
}
