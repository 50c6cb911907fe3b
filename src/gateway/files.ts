import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { errorText } from '../base/errors.ts'
import { ConfigError } from '../config/errors.ts'
import type { Config } from '../config/load.ts'
import { loadModelTable } from './cost/load.ts'
import type { ModelTable } from './cost/model-table.ts'

/** What the configuration of the gateway names in files, and what it says over them. */
export interface GatewayFiles {
  readonly table: ModelTable
  /** Roots beside the usual ones, PEM. */
  readonly ca: string | undefined
  /** Sees the series of every organization at the scrape. */
  readonly operatorToken: string | undefined
}

/** @throws ConfigError for a file that cannot be read or used, and for prices that are none */
export function readGatewayFiles({ gateway }: Config): GatewayFiles {
  const { prices, price_file: priceFile, ca_file: caFile, metrics_token_file: tokenFile } = gateway
  return {
    table: loadModelTable({ prices, priceFile }),
    ca: caFile === undefined ? undefined : readRoots(caFile),
    operatorToken: tokenFile === undefined ? undefined : readToken(tokenFile),
  }
}

const fault = (key: string, message: string): ConfigError => new ConfigError(key, `${key}: ${message}`)

function readRoots(file: string): string {
  const text = readText('gateway.ca_file', file)
  if (isCertificate(text)) return text
  throw fault('gateway.ca_file', `${file} holds no certificate: it is to be PEM`)
}

function isCertificate(text: string): boolean {
  try {
    return new X509Certificate(text).raw.length > 0
  } catch {
    return false
  }
}

function readToken(file: string): string {
  const token = readText('gateway.metrics_token_file', file).trim()
  if (token !== '') return token
  throw fault('gateway.metrics_token_file', `${file} is empty: it is to hold the token`)
}

function readText(key: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw fault(key, `${file} cannot be read: ${errorText(error)}`)
  }
}
