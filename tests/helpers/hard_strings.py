"""Hard radiology strings with their sentences, labelled by hand.

The labels say what a reader of radiology reports takes for a sentence; they were
written from knowledge of such text and not copied from the splitter's output.
"""

HARD_STRINGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    # plain text
    ("", ()),
    ("   \n\t ", ()),
    ("No acute disease", ("No acute disease",)),
    ("Heart size is normal. Lungs are clear.", ("Heart size is normal.", "Lungs are clear.")),
    ("Is there a nodule? Yes! Stable.", ("Is there a nodule?", "Yes!", "Stable.")),
    ("No pneumothorax.. Heart is normal..", ("No pneumothorax.", "Heart is normal.")),
    (
        "heart is normal. lungs are clear. no effusion.",
        ("heart is normal.", "lungs are clear.", "no effusion."),
    ),
    ("HEART NORMAL. LUNGS CLEAR.NO EFFUSION.", ("HEART NORMAL.", "LUNGS CLEAR.", "NO EFFUSION.")),
    ("Heart  size\tis   normal.", ("Heart size is normal.",)),
    ("Normal.", ("Normal.",)),
    ("No.", ("No.",)),
    ("Stable; no new opacity.", ("Stable; no new opacity.",)),
    ("Edema has increased... Effusion too.", ("Edema has increased...", "Effusion too.")),
    ("Opacity at the right base. ? Pneumonia.", ("Opacity at the right base.", "? Pneumonia.")),
    (
        "Opacity at base, ?pneumonia. ? early edema.",
        ("Opacity at base, ?pneumonia.", "? early edema."),
    ),
    ("No edema. . Heart is normal.", ("No edema.", "Heart is normal.")),
    # no blank after the period
    ("Lungs are clear.No effusion.", ("Lungs are clear.", "No effusion.")),
    (
        "Lungs are clear bilaterally.There is no edema.",
        ("Lungs are clear bilaterally.", "There is no edema."),
    ),
    ("Changes of CHF.No pneumothorax.", ("Changes of CHF.", "No pneumothorax.")),
    ("Compression of L2.There is scoliosis.", ("Compression of L2.", "There is scoliosis.")),
    ("clear lungs.no effusion.", ("clear lungs.", "no effusion.")),
    ("Seen on XXXX.In addition, edema.", ("Seen on XXXX.", "In addition, edema.")),
    # numbers
    ("A 3.5 cm mass. A 1.2 x 0.8 cm nodule.", ("A 3.5 cm mass.", "A 1.2 x 0.8 cm nodule.")),
    ("Cardiothoracic ratio of 16.2/24.7. No edema.", ("Cardiothoracic ratio of 16.2/24.7.", "No edema.")),
    ("1.7 cm nodule in the right hilum.", ("1.7 cm nodule in the right hilum.",)),
    ("Fracture of right rib 4. The lungs are clear.", ("Fracture of right rib 4.", "The lungs are clear.")),
    ("Compression of T12. No listhesis.", ("Compression of T12.", "No listhesis.")),
    ("3 images. 2 granulomas are seen.", ("3 images.", "2 granulomas are seen.")),
    ("Unchanged since 2009. Stable heart.", ("Unchanged since 2009.", "Stable heart.")),
    ("Seen on 1.2.2012. No change.", ("Seen on 1.2.2012.", "No change.")),
    # abbreviations
    ("Nodule of approx. 3.0 cm. No effusion.", ("Nodule of approx. 3.0 cm.", "No effusion.")),
    ("Discussed with Dr. Smith. No change.", ("Discussed with Dr. Smith.", "No change.")),
    (
        "Dictated by John Smith, M.D. Findings were discussed.",
        ("Dictated by John Smith, M.D.", "Findings were discussed."),
    ),
    ("Atelectasis vs. pneumonia. No edema.", ("Atelectasis vs. pneumonia.", "No edema.")),
    (
        "Old fx. of the left clavicle. Exam neg. for edema.",
        ("Old fx. of the left clavicle.", "Exam neg. for edema."),
    ),
    ("Temp. 38.5 and cough. Lungs clear.", ("Temp. 38.5 and cough.", "Lungs clear.")),
    ("Tip is 3 cm. above the carina.", ("Tip is 3 cm. above the carina.",)),
    ("Tip is 3 cm. No pneumothorax.", ("Tip is 3 cm.", "No pneumothorax.")),
    ("Nodule measures 5 mm. Stable.", ("Nodule measures 5 mm.", "Stable.")),
    ("Devices, e.g. Swan-Ganz, are gone. OK.", ("Devices, e.g. Swan-Ganz, are gone.", "OK.")),
    ("Old disease, i.e. granulomas. No mass.", ("Old disease, i.e. granulomas.", "No mass.")),
    ("Lines, tubes, etc. are unchanged.", ("Lines, tubes, etc. are unchanged.",)),
    ("Lines, tubes, etc. No change.", ("Lines, tubes, etc.", "No change.")),
    ("Lead no. 2 is fractured.", ("Lead no. 2 is fractured.",)),
    ("St. Jude valve in place. Heart large.", ("St. Jude valve in place.", "Heart large.")),
    ("Film taken at 3 p.m. No pneumothorax.", ("Film taken at 3 p.m.", "No pneumothorax.")),
    ("Film of 6 a.m. shows edema.", ("Film of 6 a.m. shows edema.",)),
    ("Bilat. pleural effusions. Rt. PICC line.", ("Bilat. pleural effusions.", "Rt. PICC line.")),
    ("Ant. and post. rib fractures.", ("Ant. and post. rib fractures.",)),
    ("Resp. motion limits the study. Lungs clear.", ("Resp. motion limits the study.", "Lungs clear.")),
    ("Patient is s/p CABG. No edema.", ("Patient is s/p CABG.", "No edema.")),
    (
        "Better seen on prior CT. Cardiomegaly is stable.",
        ("Better seen on prior CT.", "Cardiomegaly is stable."),
    ),
    ("There is a mass. Cardiomegaly.", ("There is a mass.", "Cardiomegaly.")),
    ("Stanford type A. No effusion.", ("Stanford type A.", "No effusion.")),
    ("Compared with J. Smith et al. Stable.", ("Compared with J. Smith et al.", "Stable.")),
    ("Per Dr.Smith, stable.", ("Per Dr. Smith, stable.",)),
    ("Small effusion (approx. 5 mm). Stable.", ("Small effusion (approx. 5 mm).", "Stable.")),
    ('He said "no change." The heart is large.', ('He said "no change."', "The heart is large.")),
    (
        "The patient's heart isn't large. (See below.) Done.",
        ("The patient's heart isn't large.", "(See below.)", "Done."),
    ),
    # lists
    ("1. No edema. 2. No effusion.", ("No edema.", "No effusion.")),
    ("1. No edema\n2. No effusion", ("No edema", "No effusion")),
    ("1) No edema. 2) No effusion.", ("No edema.", "No effusion.")),
    ("(1) No edema; (2) no effusion.", ("No edema;", "no effusion.")),
    ("(a) No edema. (b) No effusion.", ("No edema.", "No effusion.")),
    ("- No edema\n- No effusion", ("No edema", "No effusion")),
    ("\u2022 No edema \u2022 No effusion", ("No edema", "No effusion")),
    ("* No edema.\n* No effusion.\n", ("No edema.", "No effusion.")),
    ("1. Cardiomegaly 2. Ectatic aorta", ("Cardiomegaly", "Ectatic aorta")),
    (
        "1.Severe emphysema. 2.No pneumonia. 3.Chronic scar.",
        ("Severe emphysema.", "No pneumonia.", "Chronic scar."),
    ),
    ("1. 3 mm nodule. 2. 4 mm nodule.", ("3 mm nodule.", "4 mm nodule.")),
    ("1. Fracture of rib 2. No pneumothorax.", ("Fracture of rib 2.", "No pneumothorax.")),
    ("1. Edema. It is mild. 2. Clear.", ("Edema.", "It is mild.", "Clear.")),
    (
        "1. Opacity in the\n   right lower lobe.\n2. Stable heart.",
        ("Opacity in the right lower lobe.", "Stable heart."),
    ),
    ("Chest: 1. No edema. 2. No effusion.", ("Chest: No edema.", "No effusion.")),
    # lines
    ("The lungs\nare clear.", ("The lungs are clear.",)),
    ("There is a small\nXXXX effusion.", ("There is a small XXXX effusion.",)),
    ("Changes consistent with\nCOPD. Stable.", ("Changes consistent with COPD.", "Stable.")),
    ("Fracture of left rib\n4. The lungs are clear.", ("Fracture of left rib 4.", "The lungs are clear.")),
    ("Lungs are clear\n\nNo effusion", ("Lungs are clear", "No effusion")),
    ("Lungs are clear\nNo effusion\nHeart is normal", ("Lungs are clear", "No effusion", "Heart is normal")),
    (
        "Stable moderate enlargement of the cardiac silhouette, seen by\nDr. Smith on the prior study.",
        ("Stable moderate enlargement of the cardiac silhouette, seen by Dr. Smith on the prior study.",),
    ),
    ("Clear lungs.\r\nNormal heart.\r\n", ("Clear lungs.", "Normal heart.")),
    # subheads
    ("LUNGS: Clear. HEART: Normal.", ("LUNGS: Clear.", "HEART: Normal.")),
    ("Lungs: clear\nHeart: normal", ("Lungs: clear", "Heart: normal")),
    ("LUNGS:\nClear.\n\nHEART:\nNormal.", ("LUNGS: Clear.", "HEART: Normal.")),
    ("**Lungs:** Clear.\n**Heart:** Normal.", ("Lungs: Clear.", "Heart: Normal.")),
    ("- **Lungs**: Clear.\n- **Heart**: Normal.", ("Lungs: Clear.", "Heart: Normal.")),
    ("### Lungs\nClear.\n\n### Heart\nNormal.", ("Lungs Clear.", "Heart Normal.")),
    # markdown
    ("There is **no** effusion.", ("There is no effusion.",)),
    ("There is *no* effusion and _no_ edema.", ("There is no effusion and no edema.",)),
    ("__Stable__ heart.", ("Stable heart.",)),
    # de-identification
    ("XXXX. Heart is normal.", ("Heart is normal.",)),
    ("XXXX XXXX are normal.", ("XXXX XXXX are normal.",)),
    ("No effusion.. XXXX XXXX are intact.", ("No effusion.", "XXXX XXXX are intact.")),
    ("___ is unchanged. ___.", ("___ is unchanged.",)),
    (
        "Discussed with [**Last Name 12. Foo**] by phone. Stable.",
        ("Discussed with [**Last Name 12. Foo**] by phone.", "Stable."),
    ),
    ("[**2101-3-4**] Heart is normal.", ("[**2101-3-4**] Heart is normal.",)),
    (
        "Notified Dr. XXXX at XXXX p.m. Dr. XXXX agreed.",
        ("Notified Dr. XXXX at XXXX p.m.", "Dr. XXXX agreed."),
    ),
    ("---", ()),
    ("... . !", ()),
    # other alphabets and odd characters
    (
        "\u5fc3\u810f\u6b63\u5e38\u3002\u80ba\u6e05\u6670\u3002",
        ("\u5fc3\u810f\u6b63\u5e38\u3002", "\u80ba\u6e05\u6670\u3002"),
    ),
    ("Herz normal gro\u00df. Lunge frei.", ("Herz normal gro\u00df.", "Lunge frei.")),
    (
        "Heart\u00a0size is normal. Lungs\u2019 bases clear.",
        ("Heart size is normal.", "Lungs\u2019 bases clear."),
    ),
)
