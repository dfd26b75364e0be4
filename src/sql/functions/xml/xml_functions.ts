/** Defines the XML functions that are written as ordinary function calls. */
import { BOOLEAN, isXml, TEXT, type Value, XML, type XmlForm } from "../../../types/mod.ts";
import { functionsNamed, overload } from "../base/define.ts";
import type { ScalarFunction } from "../base/function.ts";
import { xmlComment, xmlConcatenated } from "./xml_build.ts";

function wellFormed(name: string, form: XmlForm): ScalarFunction[] {
  return functionsNamed(
    [name],
    overload([TEXT], BOOLEAN, ([text = null]) => isXml(text as string, form)),
  );
}

export const XML_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(
    ["xmlcomment"],
    overload([TEXT], XML, ([text = null]) => xmlComment(text as string)),
  ),
  ...functionsNamed(
    ["xmlconcat"],
    overload([XML], XML, concatenated, { variadic: XML, seesNull: true }),
  ),
  ...wellFormed("xml_is_well_formed", "content"),
  ...wellFormed("xml_is_well_formed_content", "content"),
  ...wellFormed("xml_is_well_formed_document", "document"),
];

/** Concatenates XML values, omitting NULLs. The result is NULL if all values are NULL. */
function concatenated(values: readonly Value[]): Value {
  const texts = values.filter((value) => value !== null);
  return texts.length === 0 ? null : xmlConcatenated(texts as string[]);
}
