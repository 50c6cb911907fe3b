DROP TABLE gateway_revisions;
DROP TABLE gateway_metrics_tokens;
DROP TABLE gateway_settings;
DROP TABLE gateway_keys;
DROP TABLE gateway_aliases;
DROP TABLE gateway_credential_health;
DROP TABLE gateway_credential_secrets;
DROP TABLE gateway_credentials;
DELETE FROM platform_sealed_columns WHERE table_name = 'gateway_credential_secrets';
