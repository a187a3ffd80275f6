"""Write a small spreadsheet (.xlsx): texts, numbers, dates and empty cells."""

from datetime import date
from pathlib import Path
from xml.sax.saxutils import escape
from zipfile import ZipFile

NAMES = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"
DAY_ZERO = date(1899, 12, 30)  # of the numbers that dates are
STYLES = (
    f"<styleSheet {NAMES}><fonts><font/></fonts><fills><fill/></fills><borders><border/></borders>"
    '<cellXfs><xf/><xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>'
)


def cell(value):
    """Return a cell: a date is a number with the second style."""
    if value is None:
        return "<c/>"
    if isinstance(value, date):
        return f'<c s="1"><v>{(value - DAY_ZERO).days}</v></c>'
    if isinstance(value, int | float):
        return f"<c><v>{value}</v></c>"
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'


def write_spreadsheet(path: Path, sheets: dict[str, list[list[object]]]) -> Path:
    """Write sheets by name, each a list of lines."""
    numbers = range(1, len(sheets) + 1)
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{KIND}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{KIND}.styles+xml"/>'
        + "".join(
            f'<Override PartName="/xl/sheet{number}.xml" ContentType="{KIND}.worksheet+xml"/>'
            for number in numbers
        )
        + "</Types>",
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="r1" Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/styles.xml": STYLES,
        "xl/workbook.xml": f'<workbook {NAMES} xmlns:r="{RELATIONS}"><sheets>'
        + "".join(
            f'<sheet name="{escape(name)}" sheetId="{number}" r:id="r{number}"/>'
            for number, name in zip(numbers, sheets, strict=True)
        )
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="r0" Type="{RELATIONS}/styles" Target="styles.xml"/>'
        + "".join(
            f'<Relationship Id="r{number}" Type="{RELATIONS}/worksheet" Target="sheet{number}.xml"/>'
            for number in numbers
        )
        + "</Relationships>",
    }
    for number, lines in zip(numbers, sheets.values(), strict=True):
        rows = "".join(f"<row>{''.join(map(cell, line))}</row>" for line in lines)
        parts[f"xl/sheet{number}.xml"] = f"<worksheet {NAMES}><sheetData>{rows}</sheetData></worksheet>"
    with ZipFile(path, "w") as file:
        for name, text in parts.items():
            file.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')
    return path
