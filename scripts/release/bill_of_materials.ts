/**
 * Creates a software bill of materials in CycloneDX 1.6 format (JSON): the packages in a release,
 * with versions, licences and checksums, for tools that look for known vulnerabilities.
 */
import type { Package } from "./packages.ts";

export interface Release {
  readonly version: string;
  /** The time of the release, in seconds since 1970. */
  readonly seconds: number;
  /** The names of the packages that Tidemark itself imports. */
  readonly direct: readonly string[];
}

/**
 * Returns the bill of materials as an object to be written as JSON. The same release produces the
 * same document.
 */
export function billOfMaterials(packages: readonly Package[], release: Release): object {
  const { version, seconds, direct } = release;
  const own = `pkg:generic/tidemark@${version}`;
  const references = new Map(packages.map((each) => [each.name, packageUrl(each)]));
  const referencesOf = (names: readonly string[]): string[] =>
    names.flatMap((name) => references.get(name) ?? []).toSorted();
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: `urn:uuid:${uuidFrom(JSON.stringify([packages, release]))}`,
    version: 1,
    metadata: {
      timestamp: new Date(seconds * 1000).toISOString(),
      component: {
        type: "application",
        "bom-ref": own,
        name: "tidemark",
        version,
        purl: own,
        licenses: [{ license: { id: "Apache-2.0" } }],
      },
    },
    components: packages.map((each) => ({
      type: each.name === "bun" ? "platform" : "library",
      "bom-ref": packageUrl(each),
      name: each.name,
      version: each.version,
      purl: packageUrl(each),
      licenses: licensesOf(each.license),
      hashes: [{ alg: "SHA-512", content: each.sha512 }],
    })),
    dependencies: [
      { ref: own, dependsOn: referencesOf(direct) },
      ...packages.map((each) => ({
        ref: packageUrl(each),
        dependsOn: referencesOf(each.dependencies),
      })),
    ],
  };
}

/**
 * Returns the package URL (purl), which identifies a package across registries. The `@` of a scope
 * is escaped.
 */
function packageUrl({ name, version }: Package): string {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

/**
 * Returns a licence in CycloneDX form, which distinguishes the id of a single licence from an
 * expression of several licences.
 */
function licensesOf(license: string): object[] {
  return license.includes(" ") ? [{ expression: license }] : [{ license: { id: license } }];
}

/** Returns a version 8 UUID whose bits come from a checksum of the text. */
function uuidFrom(text: string): string {
  const hex = new Bun.CryptoHasher("sha256").update(text).digest("hex");
  const variant = "89ab".charAt(Number.parseInt(hex.charAt(16), 16) & 3);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join("-");
}
