/** Finds the issuers that the configuration trusts, either by a token's `iss` claim or by name. */
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { Issuer } from "./issuer.ts";
import type { OidcSettings, ProviderSettings } from "./oidc_settings.ts";
import { type ProviderFetch, providerFetch } from "./provider_fetch.ts";
import type { TrustedIssuer } from "./token_claims.ts";

/** An issuer whose tokens the server trusts, with its keys. */
export interface Provider extends TrustedIssuer {
  readonly keys: Issuer;
}

/** A provider through which browsers can log in. */
export interface LoginProvider extends Provider {
  readonly settings: ProviderSettings & { readonly clientId: string };
}

export class Providers {
  /** Sends requests to the login providers. */
  readonly fetch: ProviderFetch;
  readonly #byIssuer = new Map<string, Provider>();
  readonly #byName = new Map<string, LoginProvider>();

  constructor(settings: OidcSettings, { clock, log }: { clock: Clock; log: Log }) {
    this.fetch = providerFetch(clock);
    const freshMs = settings.keysFreshSeconds * 1000;
    const shared = { clock, log, fetch: this.fetch, freshMs };
    for (const each of settings.providers) {
      const { clientId, issuer, name } = each;
      const keys = new Issuer({ ...shared, url: issuer });
      const provider = { link: name, shortName: name, issuer, settings: each, keys };
      this.#byIssuer.set(issuer, provider);
      if (clientId === undefined) continue;
      this.#byName.set(name, { ...provider, settings: { ...each, clientId } });
    }
    for (const issuer of settings.trustedIssuers) {
      if (this.#byIssuer.has(issuer)) continue;
      const keys = new Issuer({ ...shared, url: issuer });
      const shortName = new URL(issuer).host;
      this.#byIssuer.set(issuer, { link: issuer, shortName, issuer, settings: undefined, keys });
    }
  }

  /** Whether the server trusts no token issuer other than itself. */
  get isEmpty(): boolean {
    return this.#byIssuer.size === 0;
  }

  /** Returns the provider whose issuer is exactly the given string. */
  ofIssuer(issuer: string): Provider | undefined {
    return this.#byIssuer.get(issuer);
  }

  /** Returns the provider for browser logins with the given name. */
  named(name: string): LoginProvider | undefined {
    return this.#byName.get(name);
  }

  /** The providers through which browsers can log in, in configuration order. */
  get logins(): readonly LoginProvider[] {
    return [...this.#byName.values()];
  }
}
