/** A key pair and a certificate that nobody trusts, for servers of tests. They protect nothing. */

/** The private key, in PEM. */
export const UNTRUSTED_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg8/7VqScjxJ2opqGj
Ur6gb/5CEZxLjgCcI3DYWvYv88ihRANCAAREuR8QwPwkVo6bdnPSqMnMIlYIIP4G
Axb9MMQJfSxr+1nwqaxFmuVydCfgRoPdgNe/9TjMUNJRT/RoUEwgBS5C
-----END PRIVATE KEY-----`;

/** The certificate, in PEM: self-signed, for localhost. */
export const UNTRUSTED_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBfzCCASWgAwIBAgIUIiAZZL/9fPJ3uGaWqKunAlSvdcswCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyNTAwMzQxMFoYDzIxMjYxMTAx
MDAzNDEwWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAREuR8QwPwkVo6bdnPSqMnMIlYIIP4GAxb9MMQJfSxr+1nwqaxFmuVy
dCfgRoPdgNe/9TjMUNJRT/RoUEwgBS5Co1MwUTAdBgNVHQ4EFgQUsKInGj1LCMsx
bDlEXq9MHzp5N+owHwYDVR0jBBgwFoAUsKInGj1LCMsxbDlEXq9MHzp5N+owDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiBkS+k6UDJnq/xHw/gpcKSX
gDX7Q6pXu/u0bsq0EdwacwIhAMBY/1XquIp/vFps/RS650hBqvY2DzE8buIiy9U3
1hgG
-----END CERTIFICATE-----`;
