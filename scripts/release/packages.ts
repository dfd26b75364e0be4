/**
 * Lists the packages that a release contains, according to `package-lock.json`: Bun, and all
 * packages that the server and the admin page import. Executables contain neither development
 * packages nor optional native parts.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface Package {
  /** The name of the package on npm, including its scope. */
  readonly name: string;
  readonly version: string;
  /** The licence as an SPDX expression. */
  readonly license: string;
  /** The folder in which the package is installed, relative to the root of the project. */
  readonly folder: string;
  /** The SHA-512 hash of the package's archive in the registry, in hexadecimal. */
  readonly sha512: string;
  /** The names of the packages in the release on which this package depends. */
  readonly dependencies: readonly string[];
}

/** An entry of `package-lock.json`. */
interface Locked {
  readonly version?: string;
  readonly license?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly devOptional?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
}

export interface Lock {
  readonly version: string;
  readonly packages: Readonly<Record<string, Locked>>;
}

const MODULES = "node_modules/";

/** Returns the packages that a release contains, sorted by name. */
export function packagesOf({ packages }: Lock): readonly Package[] {
  const released = Object.entries(packages).filter(
    ([folder, { link, dev, optional, devOptional }]) =>
      folder.includes(MODULES) && [link, dev, optional, devOptional].every((mark) => mark !== true),
  );
  const names = new Set(released.map(([folder]) => nameOf(folder)));
  return released
    .map(([folder, entry]) => packageOf(folder, entry, names))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns the names of the packages on which the server and the admin page directly depend. */
export function directDependencies({ packages }: Lock): readonly string[] {
  const own = [packages[""], packages["ui"]];
  return own.flatMap((entry) => Object.keys(entry?.dependencies ?? {})).toSorted();
}

function nameOf(folder: string): string {
  return folder.slice(folder.lastIndexOf(MODULES) + MODULES.length);
}

function packageOf(folder: string, entry: Locked, names: ReadonlySet<string>): Package {
  const name = nameOf(folder);
  const { version, license, integrity = "", dependencies = {} } = entry;
  if (version === undefined || license === undefined || !integrity.startsWith("sha512-")) {
    throw new Error(
      `Cannot list "${name}": package-lock.json lacks its version, licence or SHA-512`,
    );
  }
  return {
    name,
    version,
    license,
    folder,
    sha512: Buffer.from(integrity.slice("sha512-".length), "base64").toString("hex"),
    dependencies: Object.keys(dependencies).filter((each) => names.has(each)),
  };
}

/**
 * Returns the licences of all packages as a single text. A release must include it, because the
 * licences require copies.
 *
 * @param root The folder to which each package's `folder` is relative.
 */
export function licenceTexts(packages: readonly Package[], root: string): string {
  const texts = packages.map(({ name, version, license, folder }) => {
    const path = [...new Bun.Glob("LICEN[CS]E*").scanSync(join(root, folder))].toSorted()[0];
    const text =
      path === undefined
        ? homepageNote(join(root, folder, "package.json"))
        : readFileSync(join(root, folder, path), "utf8").trim();
    return `${name} ${version} (${license})\n\n${text}\n`;
  });
  const line = `\n${"-".repeat(80)}\n\n`;
  return `Tidemark contains the packages below, under these licences.\n${line}${texts.join(line)}`;
}

function homepageNote(manifestPath: string): string {
  const manifest = readFileSync(manifestPath, "utf8");
  const homepage = /"homepage": *"([^"]+)"/.exec(manifest)?.[1];
  if (homepage === undefined) {
    throw new Error(
      `Cannot name the licence: ${manifestPath} has no homepage, and there is no licence file beside it`,
    );
  }
  return `The package does not include the text of its licence. See ${homepage}`;
}
