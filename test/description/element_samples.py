"""Small robots that together show every element and attribute that the readers know.

They are no machines: each only has to be read, and to differ where one of its values does.
"""

from __future__ import annotations

from description_texts import joint

DRAKE = "xmlns:drake='http://drake.mit.edu'"
INERTIAL = (
    "<inertial><origin xyz='.1 .2 .3' rpy='.1 .2 .3'/><mass value='1.5'/>"
    "<inertia ixx='1' ixy='.1' ixz='.1' iyy='1' iyz='.1' izz='1'/></inertial>"
)


def link(name: str) -> str:
    return f"<link name='{name}'>{INERTIAL}</link>"


def urdf(*parts: str) -> str:
    links = "".join(link(name) for name in ("base", "thigh", "shank", "rod", "spare"))
    joints = (
        joint("hip", "base", "thigh", "<axis xyz='0 1 .5'/><origin xyz='0 .1 0' rpy='0 0 1'/>"),
        joint("knee", "thigh", "shank"),
        joint("crank", "base", "rod"),
        joint("more", "rod", "spare"),
    )
    return f"<robot name='r' {DRAKE}>{links}{''.join(joints)}{''.join(parts)}</robot>"


def transmission(kind: str, joints: str, actuators: str, more: str = "") -> str:
    return f"<transmission name='t'>{kind}{joints}{actuators}{more}</transmission>"


ROTOR = "<rotorInertia>1e-3</rotorInertia>"
BOTH = (
    "<joint name='hip'><role>joint1</role><offset>.1</offset>"
    "<param name='mechanicalReduction' value='3'/></joint>"
    "<joint name='knee'><role>joint2</role></joint>"
)
ACTUATORS = (
    f"<actuator name='m1'><role>actuator1</role>{ROTOR}</actuator>"
    "<actuator name='m2'><role>actuator2</role><param name='rotorInertia' value='2e-3'/>"
    "</actuator>"
)
DIFFERENTIAL = "transmission_interface/DifferentialTransmission"
FRAME = "<{0} link='{1}'><origin xyz='.1 0 .2' rpy='.1 .2 .3'/></{0}>"

URDF = (
    urdf(
        "<joint name='limb' type='revolute' independent='true'><parent link='thigh'/>"
        "<child link='extra'/><origin xyz='0 .1 0' rpy='0 0 1'/><axis xyz='0 1 .5'/>"
        "<limit lower='-1' upper='1' effort='5' velocity='3' acceleration='1' deceleration='1'"
        " jerk='1' drake:acceleration='2'/><dynamics damping='.1' friction='.2'"
        " coulomb_window='1' D='1' K='1' mu_coulomb='1' mu_viscous='1'/></joint>",
        link("extra"),
        "<joint name='slave' type='continuous' filename='f'><parent link='thigh'/>"
        "<child link='end'/><mimic joint='hip' multiplier='2' offset='.1'/></joint>",
        "<link name='end' type='x'/>",
        "<gazebo reference='base'><gravity>false</gravity></gazebo>",
        "<gazebo reference='thigh'><turnGravityOff>true</turnGravityOff></gazebo>",
    ).replace("<robot name='r'", "<robot name='r' version='1.0' type='x'"),
    urdf(
        "<transmission name='t' type='x/SimpleTransmission'><joint name='hip' reduction='1'/>"
        "<actuator name='m' type='x'><rotorInertia>1e-3</rotorInertia><mechanicalReduction>9"
        "</mechanicalReduction></actuator></transmission>",
        "<transmission name='s'><plugin>x/SimpleTransmission</plugin><joint name='knee'/>"
        f"<actuator name='n'>{ROTOR}</actuator><mechanicalReduction>4</mechanicalReduction>"
        "</transmission>",
        "<transmission name='u'><type>x/SimpleTransmission</type><joint name='crank'/>"
        f"<actuator name='o'>{ROTOR}</actuator><param name='gear_ratio' value='4'/>"
        "</transmission>",
    ),
    urdf(
        f"<transmission name='t'><type>{DIFFERENTIAL}</type>"
        "<joint name='knee' role='b'/><joint name='hip'>"
        "<mechanicalReduction>3</mechanicalReduction></joint>"
        f"<actuator name='m2' role='b'>{ROTOR}</actuator><actuator name='m1' role='a'>"
        f"<mechanicalReduction>5</mechanicalReduction>{ROTOR}</actuator></transmission>"
    ),
    urdf(transmission(f"<type>{DIFFERENTIAL}</type>", BOTH, ACTUATORS)),
    urdf(
        "<ros2_control name='s' type='system' rw_rate='1' is_async='true' thread_priority='1'>"
        "<joint name='hip' mimic='false'><command_interface name='effort' data_type='double'"
        " size='1'/></joint>"
        f"<transmission name='t'><plugin>{DIFFERENTIAL}</plugin>"
        "<joint name='hip' role='a'><mechanical_reduction>3</mechanical_reduction>"
        "<param name='offset' value='.1'/></joint><joint name='knee'/>"
        "<actuator name='m1' role='a'><param name='rotorInertia' value='1e-3'/></actuator>"
        f"<actuator name='m2'>{ROTOR}</actuator></transmission></ros2_control>"
    ),
    urdf(
        "<gazebo><joint name='gz' type='revolute'><parent>shank</parent><child>rod</child>"
        "<pose>0 1 0 .1 .2 .3</pose><axis><xyz>0 1 .5</xyz></axis></joint></gazebo>",
        f"<loop name='l' type='revolute'>{FRAME.format('predecessor', 'shank')}"
        f"{FRAME.format('successor', 'rod')}<axis xyz='0 1 .5'/></loop>",
        "<coupling name='c'><predecessor link='shank'/><successor link='spare'/>"
        "<ratio value='6'/></coupling>",
    ),
    urdf(
        "<constraint name='pin' type='revolute'><parent link='shank'/>"
        "<parent_origin xyz='1 0 0' rpy='.1 .2 .3'/><parent_axis xyz='0 .2 1'/>"
        "<child link='rod'/><child_origin xyz='1 0 0' rpy='.1 .2 .3'/><child_axis xyz='0 1 .5'/>"
        "</constraint><constraint name='pin2' type='revolute'><parent link='thigh'/>"
        "<child link='spare'/><axis xyz='0 .2 1'/></constraint>",
        "<loop_joint name='ball' type='revolute'><link1 link='shank' xyz='1 0 0' rpy='0 .2 1'/>"
        "<link2 link='rod' xyz='0 1 0' rpy='0 .2 1'/><axis xyz='0 1 .5'/></loop_joint>",
        "<loop_joint name='pin3' type='revolute'><parent link='shank'/>"
        "<parent_origin xyz='1 0 0' rpy='.1 .2 .3'/><parent_axis xyz='0 .2 1'/>"
        "<child link='rod'/><child_origin xyz='1 0 0' rpy='.1 .2 .3'/><child_axis xyz='0 1 .5'/>"
        "</loop_joint>",
    ),
    urdf(
        "<drake:joint name='screw' type='screw'><parent link='rod'/><child link='far'/>"
        "<origin xyz='1 0 0' rpy='.1 .2 .3'/><axis xyz='0 1 .5'/>"
        "<limit lower='-1' upper='1' effort='5' velocity='3'/>"
        "<dynamics damping='.1' friction='.2'/><drake:screw_thread_pitch value='.01'/>"
        "</drake:joint><drake:joint name='sheet' type='planar'><parent link='rod'/>"
        "<child link='sheet'/></drake:joint>",
        link("far") + link("sheet"),
        "<frame name='f' link='thigh' xyz='1 0 0' rpy='.1 .2 .3'/>",
        "<frame name='g' link='rod' xyz='1 0 0' rpy='.1 .2 .3'/>",
        "<drake:ball_constraint><drake:ball_constraint_body_A name='rod'/>"
        "<drake:ball_constraint_p_AP value='1 0 0'/><drake:ball_constraint_body_B name='thigh'/>"
        "</drake:ball_constraint><drake:distance_constraint>"
        "<drake:distance_constraint_body_A name='rod'/><drake:distance_constraint_body_B"
        " name='thigh'/><drake:distance_constraint_distance value='.4'/>"
        "</drake:distance_constraint><drake:tendon_constraint>"
        "<drake:tendon_constraint_joint name='hip' a='2'/>"
        "<drake:tendon_constraint_lower_limit value='1'/>"
        "<drake:tendon_constraint_upper_limit value='1'/></drake:tendon_constraint>"
        "<drake:linear_bushing_rpy><drake:bushing_frameA name='f'/><drake:bushing_frameC name='g'/>"
        "<drake:bushing_force_stiffness value='1 1 1'/>"
        "<drake:bushing_torque_stiffness value='1 1 0'/></drake:linear_bushing_rpy>",
    ),
)

SDF_INERTIAL = (
    "<inertial><pose>.1 .2 .3 .1 .2 .3</pose><mass>1.5</mass><inertia><ixx>1</ixx><ixy>.1</ixy>"
    "<ixz>.1</ixz><iyy>1</iyy><iyz>.1</iyz><izz>1</izz></inertia></inertial>"
)


def sdf(*parts: str, model: str = "", on: str = "base") -> str:
    links = (
        f"<link name='base'>{SDF_INERTIAL}</link>"
        f"<link name='thigh'><pose>.1 .2 .3 0 .1 .2</pose>{SDF_INERTIAL}</link>"
        f"<link name='rod'><pose>.3 .2 .3 0 .1 .2</pose>{SDF_INERTIAL}</link>"
    )
    hip = (
        f"<joint name='hip' type='revolute'><parent>{on}</parent><child>thigh</child>"
        "<axis><xyz>0 1 .5</xyz></axis></joint>"
    )
    return (
        f"<sdf version='1.10' {DRAKE}><model name='m' {model}>{links}{hip}"
        f"{''.join(parts)}</model></sdf>"
    )


CRANK = "<joint name='crank' type='revolute'><parent>base</parent><child>rod</child>{}</joint>"
AXIS = "<axis><xyz>0 1 .5</xyz>{}</axis>"
POSED = (
    "<pose relative_to='thigh' rotation_format='euler_rpy' degrees='true' frame=''>"
    "0 .1 .2 9 .3 5</pose>"
)
QUATERNION = "<pose frame='' rotation_format='quat_xyzw'>0 .1 .2 .1 .2 .3 1</pose>"

SDF = (
    sdf(
        CRANK.format(
            POSED
            + AXIS.format(
                "<limit><lower>-1</lower><upper>1</upper><effort>3</effort><velocity>2</velocity>"
                "<stiffness>1</stiffness><dissipation>1</dissipation>"
                "<drake:acceleration>1</drake:acceleration></limit><dynamics><damping>.1</damping>"
                "<friction>.2</friction><spring_stiffness>3</spring_stiffness>"
                "<spring_reference>.1</spring_reference></dynamics><mimic joint='hip'>"
                "<multiplier>2</multiplier><offset>.1</offset><reference>.2</reference></mimic>"
            )
            + "<drake:gear_ratio>9</drake:gear_ratio><drake:rotor_inertia>.1</drake:rotor_inertia>"
        ),
        "<pose relative_to='world' rotation_format='euler_rpy' degrees='true' frame=''>"
        "1 2 3 9 5 7</pose>",
    ),
    sdf(
        "<pose rotation_format='quat_xyzw'>0 .1 .2 .1 .2 .3 1</pose>",
        f"<link name='q'>{QUATERNION}</link>",
        f"<frame name='f' attached_to='thigh'>{POSED}</frame>",
        f"<frame name='e' attached_to='thigh'>{QUATERNION}</frame>",
        "<frame name='d' attached_to='thigh'/>",
        CRANK.format(
            "<pose relative_to='f'>0 .1 .2 .1 .2 .3</pose><axis>"
            "<xyz expressed_in='thigh'>0 1 .5</xyz></axis>"
        ),
        "<joint name='j' type='universal'><parent>rod</parent><child>q</child>"
        "<pose rotation_format='quat_xyzw' relative_to='e'>0 .1 .2 .1 .2 .3 1</pose>"
        + AXIS.format("")
        + "<axis2><xyz>1 0 0</xyz></axis2></joint>",
        "<joint name='k' type='revolute'><parent>q</parent><child>m2</child>"
        "<axis><xyz>1 0 0</xyz><mimic joint='j' axis='axis2'><multiplier>2</multiplier></mimic>"
        "</axis></joint><link name='m2'><pose relative_to='d' degrees='true'>1 0 0 9 0 0</pose>"
        "<inertial><pose degrees='true' rotation_format='euler_rpy' relative_to='' frame=''>"
        "0 0 .1 9 5 7</pose></inertial></link>",
        model="canonical_link='rod' placement_frame='f' namespace='n'",
        on="__model__",
    ),
    sdf(
        CRANK.format(AXIS.format("")),
        "<link name='x'><gravity>false</gravity><kinematic>true</kinematic><inertial auto='false'>"
        "<pose rotation_format='quat_xyzw'>0 .1 .2 .1 .2 .3 1</pose>"
        "</inertial></link>",
        "<link name='filled'><inertial auto='true'><density>3</density></inertial>"
        "<collision name='c'><geometry><sphere/></geometry></collision></link>",
        "<joint name='fill' type='fixed'><parent>base</parent><child>filled</child></joint>",
        "<joint name='s' type='screw'><parent>rod</parent><child>x</child>"
        + AXIS.format("")
        + "<screw_thread_pitch>.1</screw_thread_pitch></joint>",
        "<link name='y'/><joint name='old' type='screw'><parent>rod</parent><child>y</child>"
        + AXIS.format("")
        + "<thread_pitch>3</thread_pitch></joint>",
        "<link name='z'/><joint name='follows' type='revolute'><parent>rod</parent>"
        "<child>z</child>"
        + AXIS.format("")
        + "<drake:mimic joint='hip' multiplier='2' offset='.1'/></joint>",
        "<joint name='gear' type='gearbox'><parent>thigh</parent><child>rod</child>"
        "<gearbox_ratio>3</gearbox_ratio><gearbox_reference_body>base</gearbox_reference_body>"
        "<axis><xyz>0 1 .5</xyz></axis><axis2><xyz>0 1 .5</xyz></axis2></joint>",
        "<drake:ball_constraint><drake:ball_constraint_body_A>rod</drake:ball_constraint_body_A>"
        "<drake:ball_constraint_p_AP>1 0 0</drake:ball_constraint_p_AP>"
        "<drake:ball_constraint_body_B>thigh</drake:ball_constraint_body_B>"
        "</drake:ball_constraint>",
        "<drake:distance_constraint><drake:distance_constraint_body_A>x"
        "</drake:distance_constraint_body_A><drake:distance_constraint_body_B>rod"
        "</drake:distance_constraint_body_B><drake:distance_constraint_distance>.3"
        "</drake:distance_constraint_distance></drake:distance_constraint>",
        "<drake:tendon_constraint><drake:tendon_constraint_joint name='hip' a='2'/>"
        "<drake:tendon_constraint_lower_limit>1</drake:tendon_constraint_lower_limit>"
        "<drake:tendon_constraint_upper_limit>1</drake:tendon_constraint_upper_limit>"
        "</drake:tendon_constraint>",
        "<drake:linear_bushing_rpy><drake:bushing_frameA>thigh</drake:bushing_frameA>"
        "<drake:bushing_frameC>rod</drake:bushing_frameC><drake:bushing_force_stiffness>1 1 1"
        "</drake:bushing_force_stiffness><drake:bushing_torque_stiffness>1 1 0"
        "</drake:bushing_torque_stiffness></drake:linear_bushing_rpy>",
    ),
    f"<sdf version='1.10'><world name='w'><gravity>0 0 -3</gravity>"
    "<model name='ground'><static>true</static><link name='g'/></model>"
    "<model name='m' canonical_link='a' placement_frame='a' namespace='n'><static>false</static>"
    f"<pose>1 2 3 .1 .2 .3</pose><link name='b'>{SDF_INERTIAL}</link>"
    "<link name='a'><pose>0 .1 0 .1 0 0</pose></link>"
    "<joint name='j' type='revolute'><parent>__model__</parent><child>b</child>"
    "<axis><xyz>0 1 0</xyz></axis></joint></model></world></sdf>",
    sdf(
        "<static>false</static>",
        CRANK.format(AXIS.format("<use_parent_model_frame>true</use_parent_model_frame>")),
    ),
    # Versions differ in the frame of axes.
    "<sdf version='1.4'><model name='m'><link name='a'/><link name='b'><pose>1 0 0 .1 .2 .3</pose>"
    "</link><joint name='j' type='revolute'><parent>a</parent><child>b</child><axis><xyz>0 1 0"
    "</xyz></axis></joint></model></sdf>",
)
