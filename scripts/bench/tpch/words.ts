/**
 * The vocabulary of TPC-H (clause 4.2.2.13 of its specification), and text made of it.
 */
import type { Chance } from "../../support/chance.ts";

const words = (text: string): readonly string[] => text.trim().split(/\s+/);

export const COLORS: readonly string[] = words(`
  almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished
  chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab
  firebrick floral forest frosted gainsboro ghost goldenrod green grey honeydew hot indian ivory
  khaki lace lavender lawn lemon light lime linen magenta maroon medium metallic midnight mint misty
  moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder puff purple red
  rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle
  tomato turquoise violet wheat white yellow`);

export const TYPES: readonly (readonly string[])[] = [
  words("STANDARD SMALL MEDIUM LARGE ECONOMY PROMO"),
  words("ANODIZED BURNISHED PLATED POLISHED BRUSHED"),
  words("TIN NICKEL BRASS STEEL COPPER"),
];
export const CONTAINERS: readonly (readonly string[])[] = [
  words("SM LG MED JUMBO WRAP"),
  words("CASE BOX BAG JAR PKG PACK CAN DRUM"),
];
export const SEGMENTS: readonly string[] = words(
  "AUTOMOBILE BUILDING FURNITURE MACHINERY HOUSEHOLD",
);
export const PRIORITIES: readonly string[] = [
  "1-URGENT",
  "2-HIGH",
  "3-MEDIUM",
  "4-NOT SPECIFIED",
  "5-LOW",
];
export const INSTRUCTIONS: readonly string[] = [
  "DELIVER IN PERSON",
  "COLLECT COD",
  "NONE",
  "TAKE BACK RETURN",
];
export const MODES: readonly string[] = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"];
export const REGIONS: readonly string[] = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];

/** The nations, each with the number of its region. */
export const NATIONS: readonly (readonly [string, number])[] = [
  ["ALGERIA", 0],
  ["ARGENTINA", 1],
  ["BRAZIL", 1],
  ["CANADA", 1],
  ["EGYPT", 4],
  ["ETHIOPIA", 0],
  ["FRANCE", 3],
  ["GERMANY", 3],
  ["INDIA", 2],
  ["INDONESIA", 2],
  ["IRAN", 4],
  ["IRAQ", 4],
  ["JAPAN", 2],
  ["JORDAN", 4],
  ["KENYA", 0],
  ["MOROCCO", 0],
  ["MOZAMBIQUE", 0],
  ["PERU", 1],
  ["CHINA", 2],
  ["ROMANIA", 3],
  ["SAUDI ARABIA", 4],
  ["VIETNAM", 2],
  ["RUSSIA", 3],
  ["UNITED KINGDOM", 3],
  ["UNITED STATES", 1],
];

const NOUNS = words(`
  foxes ideas theodolites instructions dependencies excuses platelets asymptotes courts dolphins
  multipliers sauternes warthogs frets dinos attainments somas braids hockey players frays warhorses
  dugouts notornis epitaphs pearls tithes waters orbits gifts sheaves depths sentiments decoys realms
  pains grouches escapades packages requests accounts deposits pinto beans`);
const VERBS = words(`
  sleep wake are cajole haggle nag use boost affix detect integrate maintain nod was lose sublate
  solve thrash promise engage hinder print x-ray breach eat grow impress mold poach serve run dazzle
  snooze doze unwind kindle play hang believe doubt`);
const ADJECTIVES = words(`
  furious sly careful blithe quick fluffy slow quiet ruthless thin close dogged daring brave stealthy
  permanent enticing idle busy regular final ironic even bold silent special pending express unusual`);
const ADVERBS = words(`
  sometimes always never furiously slyly carefully blithely quickly fluffily slowly quietly ruthlessly
  thinly closely doggedly daringly bravely stealthily permanently enticingly idly busily regularly
  finally ironically evenly boldly silently`);
const PREPOSITIONS = words(`
  about above according across after against along among around at atop before behind beneath beside
  besides between beyond by despite during except for from inside into near of on outside over past
  since through throughout to toward under until up upon without with within`);
const ENDS = [".", ";", ":", "?", "!", "--"];

/** Returns sentences of the grammar, cut to a length within the bounds. */
export function commentOf(chance: Chance, min: number, max: number): string {
  const length = min + chance.below(max - min + 1);
  let text = "";
  while (text.length < length) text += `${sentence(chance)}${chance.pick(ENDS)} `;
  return text.slice(0, length).trimEnd();
}

function sentence(chance: Chance): string {
  const parts = [nounPhrase(chance), verbPhrase(chance)];
  const form = chance.below(5);
  if (form === 1 || form === 4) parts.push(prepositionPhrase(chance));
  if (form === 2 || form === 4) parts.push(nounPhrase(chance));
  return parts.join(" ");
}

function nounPhrase(chance: Chance): string {
  const noun = chance.pick(NOUNS);
  switch (chance.below(4)) {
    case 0:
      return noun;
    case 1:
      return `${chance.pick(ADJECTIVES)} ${noun}`;
    case 2:
      return `${chance.pick(ADJECTIVES)}, ${chance.pick(ADJECTIVES)} ${noun}`;
    default:
      return `${chance.pick(ADVERBS)} ${chance.pick(ADJECTIVES)} ${noun}`;
  }
}

function verbPhrase(chance: Chance): string {
  const verb = chance.pick(VERBS);
  return chance.below(2) === 0 ? verb : `${verb} ${chance.pick(ADVERBS)}`;
}

function prepositionPhrase(chance: Chance): string {
  return `${chance.pick(PREPOSITIONS)} the ${nounPhrase(chance)}`;
}
