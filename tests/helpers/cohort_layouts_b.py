"""Tiny data sets in the true layout of MIMIC-CXR, PadChest and PadChest-GR; every text is invented."""

import csv
import gzip
import io
import json

# --- writing --------------------------------------------------------------------------


def csv_text(header, rows):
    """Write a table as text, quoted where CSV wants it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def write(path, text):
    """Write a file, packed where its name says so, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


def cut(path, keep):
    """Keep only the first bytes of a file."""
    path.write_bytes(path.read_bytes()[:keep])


# --- MIMIC-CXR ------------------------------------------------------------------------

MIMIC_METADATA = "mimic-cxr-2.0.0-metadata.csv.gz"
MIMIC_SPLIT = "mimic-cxr-2.0.0-split.csv.gz"
MIMIC_METADATA_COLUMNS = [
    "dicom_id",
    "subject_id",
    "study_id",
    "PerformedProcedureStepDescription",
    "ViewPosition",
    "Rows",
    "Columns",
    "StudyDate",
    "StudyTime",
    "ProcedureCodeSequence_CodeMeaning",
    "ViewCodeSequence_CodeMeaning",
    "PatientOrientationCodeSequence_CodeMeaning",
]
MIMIC_SPLIT_COLUMNS = ["dicom_id", "study_id", "subject_id", "split"]

MIMIC_REPORT = """\
                                 FINAL REPORT
 EXAMINATION:  CHEST (PA AND LAT)
 
 INDICATION:  ___ year old with cough  // pneumonia?
 
 TECHNIQUE:  Chest PA and lateral
 
 COMPARISON:  ___
 
 FINDINGS: 
 
 There is a small left pleural effusion, unchanged from
 the previous study.
 
 IMPRESSION: 
 
 No pneumonia.
"""  # noqa: W291, W293  # blank lines of these files have a blank, and so have headers at their end

# (dicom, patient, study, view, date, time, split); the later study of 10000032 has the smaller id
MIMIC_IMAGES = [
    ("02aa804e-bde0afdd", 10000032, 50414267, "PA", "21800506", "213014.531", "train"),
    ("174413ec-4ec4c1f7", 10000032, 50414267, "LATERAL", "21800506", "212959.0", "train"),
    ("2a2277a9-b0ded155", 10000032, 50300000, "AP", "21800626", "93015.5", "train"),
    ("e084de3b-be89b11e", 10000764, 57375967, "", "21321015", "", "validate"),
    ("68b5c4b1-227d0485", 11000011, 51029426, "AP AXIAL", "21501231", "5", "test"),
]


def mimic_image(image):
    """Return a row of the metadata file, in which rows and columns stand too."""
    dicom, patient, study, view, date, time, _ = image
    return [dicom, patient, study, "CHEST (PA AND LAT)", view, 3056, 2544, date, time, "CHEST", "", "Erect"]


def mimic_report_path(image, folder="files"):
    """Return where the report of an image's study lies."""
    return f"{folder}/p{str(image[1])[:2]}/p{image[1]}/s{image[2]}.txt"


def mimic_tables(folder, images=MIMIC_IMAGES, *, metadata=MIMIC_METADATA, split=MIMIC_SPLIT):
    """Write the two tables."""
    write(folder / metadata, csv_text(MIMIC_METADATA_COLUMNS, map(mimic_image, images)))
    splits = [[image[0], image[2], image[1], image[6]] for image in images]
    write(folder / split, csv_text(MIMIC_SPLIT_COLUMNS, splits))
    return folder


def mimic(folder, images=MIMIC_IMAGES, *, reports="files", **names):
    """Write MIMIC-CXR-JPG with the reports of MIMIC-CXR beside it."""
    mimic_tables(folder, images, **names)
    for image in images:
        write(folder / mimic_report_path(image, reports), MIMIC_REPORT)
    return folder


# --- PadChest -------------------------------------------------------------------------

PADCHEST = "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv"
PADCHEST_COLUMNS = [
    "",  # pandas' index
    "ImageID",
    "ImageDir",
    "StudyDate_DICOM",
    "StudyID",
    "PatientID",
    "PatientBirth",
    "PatientSex_DICOM",
    "ViewPosition_DICOM",
    "Projection",
    "MethodProjection",
    "Pediatric",
    "Modality_DICOM",
    "Manufacturer_DICOM",
    "PhotometricInterpretation_DICOM",
    "PixelRepresentation_DICOM",
    "PixelAspectRatio_DICOM",
    "SpatialResolution_DICOM",
    "BitsStored_DICOM",
    "WindowCenter_DICOM",
    "WindowWidth_DICOM",
    "Rows_DICOM",
    "Columns_DICOM",
    "XRayTubeCurrent_DICOM",
    "Exposure_DICOM",
    "ExposureInuAs_DICOM",
    "ExposureTime",
    "RelativeXRayExposure_DICOM",
    "ReportID",
    "Report",
    "MethodLabel",
    "Labels",
    "Localizations",
    "LabelsLocalizationsBySentence",
    "labelCUIS",
    "LocalizationsCUIS",
]
# (image, folder, date, study, patient, DICOM's view, projection, report)
PADCHEST_IMAGES = [
    ("s1_k6ga29.png", "0", "20140915", "s1", "p1", "POSTEROANTERIOR", "PA", "sin cambi . derram pleural ."),
    ("s1_2sjufn.png", "0", "20140915", "s1", "p1", "LATERAL", "L", "sin cambi . derram pleural ."),
    ("s2_abcdef.png", "12", "20150102.0", "s2", "p1", "", "AP_horizontal", "cardiomegali"),
    ("s3_abcdef.png", "54", "20100102", "s3", "p2", "ANTEROPOSTERIOR", "UNK", "infiltr . tub endotraqueal"),
    ("s4_abcdef.png", "54", "20110102", "s4", "p2", "AP", "COSTAL", 'linea\ncon "comillas"'),
]


def padchest_row(number, image):
    """Return a row with all columns of PadChest."""
    name, folder, date, study, patient, dicom_view, projection, report = image
    known = {
        "": number,
        "ImageID": name,
        "ImageDir": folder,
        "StudyDate_DICOM": date,
        "StudyID": study,
        "PatientID": patient,
        "PatientBirth": "1930.0",
        "ViewPosition_DICOM": dicom_view,
        "Projection": projection,
        "Report": report,
        "Labels": "['normal', 'pleural effusion']",
        "Pediatric": "No",
    }
    return [known.get(column, "None") for column in PADCHEST_COLUMNS]


def padchest(folder, images=PADCHEST_IMAGES, *, name=PADCHEST):
    """Write PadChest."""
    rows = (padchest_row(number, image) for number, image in enumerate(images))
    write(folder / name, csv_text(PADCHEST_COLUMNS, rows))
    return folder


# --- PadChest-GR ----------------------------------------------------------------------

GR_TABLE, GR_REPORTS = "master_table.csv", "grounded_reports_20240819.json"
GR_COLUMNS = [
    "StudyID",
    "ImageID",
    "label",
    "boxes_count",
    "extra_boxes_count",
    "locations",
    "prior_study",
    "progression_status",
    "prior_imageID",
    "sentence_en",
    "sentence_es",
    "study_is_benchmark",
    "study_is_validation",
    "split",
    "PatientID",
    "patient_is_benchmark",
    "PatientBirth",
    "PatientSex_DICOM",
    "StudyDate_DICOM",
    "StudyDate",
    "PatientAge",
    "label_group",
    "Year",
]
# (study, image, label, patient, date, split); a row per label
GR_ROWS = [
    ("s1", "s1_k6ga29.png", "pleural effusion", "p1", "20140915", "train"),
    ("s1", "s1_k6ga29.png", "nodule", "p1", "20140915", "train"),
    ("s2", "s2_abcdef.png", "Normal", "p1", "20150102", "train"),
    ("s3", "s3_abcdef.png", "Normal", "p2", "20100102", "validation"),
]
GR_ITEMS = [
    {
        "StudyID": "s1",
        "ImageID": "s1_k6ga29.png",
        "PreviousStudyID": None,
        "PreviousImageID": None,
        "findings": [
            {
                "sentence_en": "Small left pleural effusion.",
                "sentence_es": "Pequeño derrame pleural izquierdo.",
                "abnormal": True,
                "boxes": [[0.1, 0.6, 0.4, 0.9]],
                "extra_boxes": [],
                "labels": ["pleural effusion"],
                "locations": ["left"],
                "progression": None,
            },
            {"sentence_en": "No nodules", "sentence_es": "Sin nódulos", "abnormal": False},
            {"sentence_en": None, "sentence_es": "Sin traducir", "abnormal": False},
        ],
    },
    {"StudyID": "s2", "ImageID": "s2_abcdef.png", "findings": [{"sentence_en": "Normal heart."}]},
    {"StudyID": "s3", "ImageID": "s3_abcdef.png", "findings": [{"sentence_en": "Clear lungs."}]},
]


def gr_row(row):
    """Return a row with all columns of the master table."""
    known = dict(
        zip(("StudyID", "ImageID", "label", "PatientID", "StudyDate_DICOM", "split"), row, strict=True)
    )
    return [known.get(column, "") for column in GR_COLUMNS]


def padchest_gr(folder, rows=GR_ROWS, items=GR_ITEMS):
    """Write PadChest-GR."""
    write(folder / GR_TABLE, csv_text(GR_COLUMNS, map(gr_row, rows)))
    write(folder / GR_REPORTS, json.dumps(items, ensure_ascii=False, indent=1))
    return folder
